import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Asks Flink what SQL expressions answer on given rows: `java Evaluate QUESTIONS.json ANSWERS.json`.
 *
 * The rows are read from a file, so that nothing is folded into a constant before the job runs. An answer is the text
 * that CAST(... AS STRING) gives (hexadecimal for bytes), null, or {"error": ...} for what ended the job.
 */
public class Evaluate {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        Cluster.endWithMain();
        ArrayNode answered = JSON.createArrayNode();
        for (JsonNode group : JSON.readTree(new File(args[0]))) {
            long start = System.nanoTime();
            answered.add(answer(group));
            JSON.writeValue(new File(args[1]), answered);
            System.err.printf("%s: %.1f s%n", group.get("name").asText(), (System.nanoTime() - start) / 1e9);
        }
        System.exit(0);
    }

    static ObjectNode answer(JsonNode group) throws Exception {
        List<ObjectNode> accepted = new ArrayList<>();
        ObjectNode result = ((ObjectNode) group).deepCopy();
        ArrayNode expressions = result.putArray("expressions");
        TableEnvironment env = environment(group, group.get("rows"));
        for (JsonNode sql : group.get("expressions")) {
            ObjectNode entry = expressions.addObject().put("sql", sql.asText());
            try {
                LogicalType type = env.sqlQuery("SELECT " + sql.asText() + " AS x FROM t").getResolvedSchema()
                        .getColumnDataTypes().get(0).getLogicalType();
                entry.put("type", type.asSerializableString());
                env.explainSql("SELECT " + asText(entry) + " FROM t");
                accepted.add(entry);
            } catch (Exception | AssertionError | StackOverflowError refusal) {
                entry.put("refused", reason(refusal));
            }
        }
        for (ObjectNode entry : accepted) {
            entry.putArray("answers");
        }
        for (JsonNode row : group.get("rows")) {
            answer(environment(group, JSON.createArrayNode().add(row)), accepted);
        }
        return result;
    }

    /** Adds one answer to each entry: all in one job, or where that fails, half by half down to the one at fault. */
    static void answer(TableEnvironment oneRow, List<ObjectNode> entries) {
        try {
            Row row = collect(oneRow, entries).get(0);
            for (int i = 0; i < entries.size(); i++) {
                ((ArrayNode) entries.get(i).get("answers")).add(text(row.getField(i)));
            }
        } catch (Exception failure) {
            if (entries.size() == 1) {
                ((ArrayNode) entries.get(0).get("answers")).addObject().put("error", reason(failure));
            } else {
                answer(oneRow, entries.subList(0, entries.size() / 2));
                answer(oneRow, entries.subList(entries.size() / 2, entries.size()));
            }
        }
    }

    static TableEnvironment environment(JsonNode group, JsonNode rows) throws Exception {
        Configuration settings = Cluster.settings(group.path("zone").asText("UTC"));
        TableEnvironment env = TableEnvironment.create(
                EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
        Path folder = Files.createTempDirectory("rows");
        StringBuilder lines = new StringBuilder();
        for (JsonNode row : rows) {
            lines.append(row).append("\n");
        }
        Files.writeString(folder.resolve("rows.json"), lines);
        folder.toFile().deleteOnExit();
        env.executeSql("CREATE TABLE t (" + group.get("columns").asText() + ") WITH ('connector' = 'filesystem', "
                + "'path' = '" + folder.toUri() + "', 'format' = 'json')");
        return env;
    }

    static String asText(ObjectNode entry) {
        String sql = entry.get("sql").asText();
        String type = entry.get("type").asText();
        return (type.startsWith("BINARY") || type.startsWith("VARBINARY") || type.startsWith("BYTES"))
                ? "(" + sql + ")" : "CAST(" + sql + " AS STRING)";
    }

    static String text(Object value) {
        return value instanceof byte[] bytes ? HexFormat.of().formatHex(bytes) : (String) value;
    }

    static List<Row> collect(TableEnvironment env, List<ObjectNode> entries) throws Exception {
        String columns = entries.stream().map(Evaluate::asText).collect(Collectors.joining(", "));
        List<Row> rows = new ArrayList<>();
        try (CloseableIterator<Row> all = env.executeSql("SELECT " + columns + " FROM t").collect()) {
            all.forEachRemaining(rows::add);
        }
        return rows;
    }

    /** The innermost message, its first line. */
    static String reason(Throwable failure) {
        while (failure.getCause() != null) {
            failure = failure.getCause();
        }
        String text = String.valueOf(failure.getMessage());
        return failure.getClass().getSimpleName() + ": " + text.lines().findFirst().orElse("");
    }
}
