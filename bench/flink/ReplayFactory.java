import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.RuntimeConverter;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.LookupFunction;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.Row;
import org.apache.flink.api.common.typeinfo.TypeInformation;

/** The connector 'replay': a table of the case that Replay plays, declared by a CREATE TABLE of its own. */
public class ReplayFactory implements DynamicTableSourceFactory {
    static final ConfigOption<String> MODE = ConfigOptions.key("mode").stringType().defaultValue("append");

    @Override
    public String factoryIdentifier() {
        return "replay";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of();
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of(MODE);
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        DataType physical = context.getPhysicalRowDataType();
        List<String> types = DataType.getFieldDataTypes(physical).stream()
                .map(type -> type.getLogicalType().asSummaryString()).toList();
        String table = context.getObjectIdentifier().getObjectName();
        Replay.Player player = Replay.player(Replay.current, table, types);
        return switch (context.getCatalogTable().getOptions().getOrDefault("mode", "append")) {
            case "lookup" -> new LookedUp(physical, player);
            case "append" -> new Played(ChangelogMode.insertOnly(), physical, player);
            case "upsert" -> new Played(ChangelogMode.upsert(), physical, player);
            default -> new Played(ChangelogMode.all(), physical, player);
        };
    }

    /** What every table of this connector says of itself. */
    interface Replayed extends DynamicTableSource {
        @Override
        default DynamicTableSource copy() {
            return this;
        }

        @Override
        default String asSummaryString() {
            return "replay";
        }
    }

    /** A table that is asked for rows: all that it ever has are there from the beginning. */
    record LookedUp(DataType physical, Replay.Player player) implements Replayed, LookupTableSource {
        @Override
        public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
            int[] places = Arrays.stream(context.getKeys()).mapToInt(path -> path[0]).toArray();
            return LookupFunctionProvider.of(
                    new InMemory(player, physical, context.createDataStructureConverter(physical), places));
        }
    }

    /** Finds rows by comparing all of them. */
    public static class InMemory extends LookupFunction {
        final Replay.Player player;
        final DynamicTableSource.DataStructureConverter converter;
        final int[] places;
        final RowData.FieldGetter[] stored;
        final RowData.FieldGetter[] asked;
        private transient List<RowData> rows;

        InMemory(Replay.Player player, DataType physical, DynamicTableSource.DataStructureConverter converter,
                int[] places) {
            this.player = player;
            this.converter = converter;
            this.places = places;
            List<LogicalType> types = physical.getLogicalType().getChildren();
            stored = IntStream.range(0, places.length)
                    .mapToObj(i -> RowData.createFieldGetter(types.get(places[i]), places[i]))
                    .toArray(RowData.FieldGetter[]::new);
            asked = IntStream.range(0, places.length)
                    .mapToObj(i -> RowData.createFieldGetter(types.get(places[i]), i))
                    .toArray(RowData.FieldGetter[]::new);
        }

        @Override
        public void open(FunctionContext context) {
            converter.open(RuntimeConverter.Context.create(getClass().getClassLoader()));
            rows = player.rows.stream().map(row -> (RowData) converter.toInternal(row)).toList();
        }

        @Override
        public Collection<RowData> lookup(RowData key) {
            return rows.stream().filter(row -> IntStream.range(0, places.length).allMatch(
                    i -> Objects.equals(stored[i].getFieldOrNull(row), asked[i].getFieldOrNull(key)))).toList();
        }
    }

    record Played(ChangelogMode mode, DataType physical, Replay.Player player) implements Replayed, ScanTableSource {
        @Override
        public ChangelogMode getChangelogMode() {
            return mode;
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            DataStructureConverter converter = context.createDataStructureConverter(physical);
            TypeInformation<RowData> type = context.createTypeInformation(physical);
            return new DataStreamScanProvider() {
                @Override
                public DataStream<RowData> produceDataStream(ProviderContext ignored, StreamExecutionEnvironment env) {
                    return env.addSource(new Internal(player, converter), "replay", type);
                }

                @Override
                public boolean isBounded() {
                    return false;
                }
            };
        }
    }

    /** A player whose rows are turned into Flink's own form. */
    static class Internal implements SourceFunction<RowData> {
        final Replay.Player player;
        final DynamicTableSource.DataStructureConverter converter;

        Internal(Replay.Player player, DynamicTableSource.DataStructureConverter converter) {
            this.player = player;
            this.converter = converter;
        }

        @Override
        public void run(SourceContext<RowData> out) throws Exception {
            converter.open(RuntimeConverter.Context.create(getClass().getClassLoader()));
            for (int i = 0; i < player.rows.size(); i++) {
                player.until(player.turns.get(i));
                out.collect((RowData) converter.toInternal(player.rows.get(i)));
            }
            player.until(player.last);
        }

        @Override
        public void cancel() {
        }
    }
}
