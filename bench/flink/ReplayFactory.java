import java.util.List;
import java.util.Set;
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
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.types.DataType;
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
        ChangelogMode mode = switch (context.getCatalogTable().getOptions().getOrDefault("mode", "append")) {
            case "append" -> ChangelogMode.insertOnly();
            case "upsert" -> ChangelogMode.upsert();
            default -> ChangelogMode.all();
        };
        DataType physical = context.getPhysicalRowDataType();
        List<String> types = DataType.getFieldDataTypes(physical).stream()
                .map(type -> type.getLogicalType().asSummaryString()).toList();
        String table = context.getObjectIdentifier().getObjectName();
        return new Played(mode, physical, Replay.player(Replay.current, table, types));
    }

    record Played(ChangelogMode mode, DataType physical, Replay.Player player) implements ScanTableSource {
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

        @Override
        public DynamicTableSource copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return "replay";
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
