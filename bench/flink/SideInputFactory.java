import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.LookupFunction;

/**
 * The connector 'side-input': a file of lines `key,value`, which each task that looks up keys reads into memory, as the
 * table of a CSV file did in which Nexmark has its side input, and which Flink 2 has no more.
 */
public class SideInputFactory implements DynamicTableSourceFactory {
    static final ConfigOption<String> PATH = ConfigOptions.key("path").stringType().noDefaultValue();

    @Override
    public String factoryIdentifier() {
        return "side-input";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(PATH);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of();
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        return new SideInput(context.getCatalogTable().getOptions().get(PATH.key()));
    }

    record SideInput(String path) implements LookupTableSource {
        @Override
        public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
            return LookupFunctionProvider.of(new InMemory(path));
        }

        @Override
        public DynamicTableSource copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return "side-input";
        }
    }

    /** Finds the row of a key. */
    public static class InMemory extends LookupFunction {
        final String path;
        private transient Map<Long, Collection<RowData>> rows;

        InMemory(String path) {
            this.path = path;
        }

        @Override
        public void open(FunctionContext context) {
            rows = new HashMap<>();
            try {
                for (String line : Files.readAllLines(Path.of(path))) {
                    int end = line.indexOf(',');
                    long key = Long.parseLong(line.substring(0, end));
                    rows.put(key, List.of(GenericRowData.of(key, StringData.fromString(line.substring(end + 1)))));
                }
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
        }

        @Override
        public Collection<RowData> lookup(RowData key) {
            return rows.getOrDefault(key.getLong(0), List.of());
        }
    }
}
