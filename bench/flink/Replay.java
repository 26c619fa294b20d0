import java.io.File;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoField;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;

/**
 * Plays small streams to Flink SQL queries and writes down the changes that come out: `java Replay CASES.json OUT.json`.
 *
 * Rows arrive one after another with a pause between them, and a watermark follows each row at once. So what comes out
 * does not depend on chance, also for queries over several tables. After the last row every watermark is infinite.
 */
public class Replay {
    /** The case that is being played, for the tables that it declares by a statement. */
    static volatile JsonNode current;
    /** When the players of each case began; sources run in this same process. */
    static final Map<String, Long> STARTS = new ConcurrentHashMap<>();
    static final ObjectMapper JSON = new ObjectMapper();
    static final DateTimeFormatter SQL_TIME = new DateTimeFormatterBuilder().appendPattern("yyyy-MM-dd HH:mm:ss")
            .appendFraction(ChronoField.NANO_OF_SECOND, 0, 9, true).toFormatter();

    public static void main(String[] args) throws Exception {
        Cluster.endWithMain();
        ArrayNode results = JSON.createArrayNode();
        for (JsonNode played : JSON.readTree(new File(args[0]))) {
            ObjectNode result = ((ObjectNode) played).deepCopy();
            current = played;
            try {
                play(played, result);
            } catch (Exception | AssertionError refusal) {
                result.remove("changes");
                result.put("refused", reason(refusal));
            }
            results.add(result);
            System.err.print(".");
            JSON.writeValue(new File(args[1]), results);
        }
        System.exit(0);
    }

    static void play(JsonNode played, ObjectNode result) throws Exception {
        Configuration settings = Cluster.settings("UTC");
        settings.set(org.apache.flink.configuration.PipelineOptions.AUTO_WATERMARK_INTERVAL, Duration.ZERO);
        settings.setString("execution.buffer-timeout.interval", "0 ms");
        for (Map.Entry<String, JsonNode> option : played.path("settings").properties()) {
            settings.setString(option.getKey(), option.getValue().asText());
        }
        StreamExecutionEnvironment streams = new StreamExecutionEnvironment(settings);
        streams.setRuntimeMode(RuntimeExecutionMode.STREAMING);
        streams.setParallelism(1);
        StreamTableEnvironment tables = StreamTableEnvironment.create(streams);
        for (JsonNode statement : played.path("statements")) {
            tables.executeSql(statement.asText());
        }
        JsonNode declared = played.path("tables");
        for (Map.Entry<String, JsonNode> table : declared.properties()) {
            List<String> types = new ArrayList<>();
            table.getValue().get("columns").elements().forEachRemaining(type -> types.add(type.asText()));
            declare(streams, tables, table.getKey(), table.getValue(), player(played, table.getKey(), types));
        }
        for (JsonNode view : played.path("views")) {
            tables.executeSql(view.asText());
        }
        TableResult answer = tables.executeSql(played.get("query").asText());
        result.set("columns", JSON.valueToTree(answer.getResolvedSchema().getColumns().stream()
                .map(column -> column.getName() + " " + column.getDataType()).toList()));
        ArrayNode changes = result.putArray("changes");
        try (CloseableIterator<Row> all = answer.collect()) {
            while (all.hasNext()) {
                Row row = all.next();
                ArrayNode values = changes.addArray().add(row.getKind().shortString()).addArray();
                for (int i = 0; i < row.getArity(); i++) {
                    values.addPOJO(value(row.getField(i)));
                }
            }
        }
    }

    /** Who plays the rows of one table, given the types of its columns. */
    static Player player(JsonNode played, String table, List<String> types) {
        List<Row> rows = new ArrayList<>();
        List<Integer> turns = new ArrayList<>();
        int turn = 0;
        for (JsonNode arrival : played.get("arrivals")) {
            if (arrival.get(0).asText().equals(table)) {
                rows.add(row(types, arrival));
                turns.add(turn);
            }
            turn++;
        }
        return new Player(played.get("name").asText(), rows, turns, turn);
    }

    static void declare(StreamExecutionEnvironment streams, StreamTableEnvironment tables, String name, JsonNode table,
            Player player) {
        if (table.path("mode").asText().equals("lookup")) {
            List<String> columns = new ArrayList<>();
            table.get("columns").properties().forEach(
                    column -> columns.add("`" + column.getKey() + "` " + column.getValue().asText()));
            tables.executeSql("CREATE TABLE " + name + " (" + String.join(", ", columns)
                    + ") WITH ('connector' = 'replay', 'mode' = 'lookup')");
            return;
        }
        Schema.Builder schema = Schema.newBuilder();
        List<String> names = new ArrayList<>();
        List<TypeInformation<?>> types = new ArrayList<>();
        for (Map.Entry<String, JsonNode> column : table.get("columns").properties()) {
            schema.column(column.getKey(), column.getValue().asText());
            names.add(column.getKey());
            types.add(carrier(column.getValue().asText()));
        }
        if (table.has("watermark")) {
            schema.watermark(table.get("watermark").get(0).asText(), table.get("watermark").get(1).asText());
        }
        if (table.has("key")) {
            List<String> key = new ArrayList<>();
            table.get("key").forEach(column -> key.add(column.asText()));
            schema.primaryKey(key);
        }
        DataStream<Row> rows = streams.addSource(player,
                Types.ROW_NAMED(names.toArray(new String[0]), types.toArray(new TypeInformation[0])));
        ChangelogMode mode = switch (table.path("mode").asText("append")) {
            case "append" -> ChangelogMode.insertOnly();
            case "upsert" -> ChangelogMode.upsert();
            default -> ChangelogMode.all();
        };
        tables.createTemporaryView(name, tables.fromChangelogStream(rows, schema.build(), mode));
    }

    /** Emits each row at its turn; all players of one case start their turns at the same moment. */
    static class Player implements SourceFunction<Row> {
        static final long PAUSE = 60;
        final ArrayList<Row> rows;
        final ArrayList<Integer> turns;
        final int last;
        final String stage;

        Player(String stage, List<Row> rows, List<Integer> turns, int last) {
            this.rows = new ArrayList<>(rows);
            this.turns = new ArrayList<>(turns);
            this.last = last;
            this.stage = stage;
        }

        @Override
        public void run(SourceContext<Row> out) throws Exception {
            for (int i = 0; i < rows.size(); i++) {
                until(turns.get(i));
                out.collect(rows.get(i));
            }
            until(last);
        }

        void until(int turn) throws InterruptedException {
            long start = STARTS.computeIfAbsent(stage, first -> System.currentTimeMillis() + 500);
            Thread.sleep(Math.max(0, start + turn * PAUSE - System.currentTimeMillis()));
        }

        @Override
        public void cancel() {
        }
    }

    static Row row(List<String> types, JsonNode arrival) {
        JsonNode values = arrival.get(2);
        Row row = new Row(kind(arrival.get(1).asText()), types.size());
        for (int i = 0; i < types.size(); i++) {
            row.setField(i, field(types.get(i), values.get(i)));
        }
        return row;
    }

    static RowKind kind(String text) {
        for (RowKind kind : RowKind.values()) {
            if (kind.shortString().equals(text)) {
                return kind;
            }
        }
        throw new IllegalArgumentException(text);
    }

    static String head(String type) {
        return type.split("[ (]")[0];
    }

    static TypeInformation<?> carrier(String type) {
        return switch (head(type)) {
            case "INT" -> Types.INT;
            case "BIGINT" -> Types.LONG;
            case "DOUBLE" -> Types.DOUBLE;
            case "BOOLEAN" -> Types.BOOLEAN;
            case "STRING" -> Types.STRING;
            case "DECIMAL" -> Types.BIG_DEC;
            case "DATE" -> Types.LOCAL_DATE;
            case "TIMESTAMP" -> Types.LOCAL_DATE_TIME;
            case "TIMESTAMP_LTZ" -> Types.INSTANT;
            default -> throw new IllegalArgumentException(type);
        };
    }

    static Object field(String type, JsonNode value) {
        if (value.isNull()) {
            return null;
        }
        return switch (head(type)) {
            case "TINYINT" -> (byte) value.asInt();
            case "SMALLINT" -> (short) value.asInt();
            case "INT" -> value.asInt();
            case "BIGINT" -> value.asLong();
            case "FLOAT" -> (float) value.asDouble();
            case "DOUBLE" -> value.asDouble();
            case "BOOLEAN" -> value.asBoolean();
            case "STRING", "VARCHAR", "CHAR" -> value.asText();
            case "DECIMAL" -> new BigDecimal(value.asText());
            case "DATE" -> LocalDate.parse(value.asText());
            case "TIMESTAMP" -> LocalDateTime.parse(value.asText(), SQL_TIME);
            case "TIMESTAMP_LTZ" -> Instant.parse(value.asText().replace(' ', 'T'));
            default -> throw new IllegalArgumentException(type);
        };
    }

    static Object value(Object field) {
        if (field instanceof LocalDateTime time) {
            return SQL_TIME.format(time);
        }
        if (field instanceof Instant instant) {
            return SQL_TIME.format(instant.atZone(java.time.ZoneOffset.UTC)) + "Z";
        }
        return field instanceof Row || field instanceof LocalDate || field instanceof LocalTime || field instanceof BigDecimal
                ? field.toString() : field;
    }

    /** The innermost message, its first line. */
    static String reason(Throwable failure) {
        while (failure.getCause() != null) {
            failure = failure.getCause();
        }
        return failure.getClass().getSimpleName() + ": " + String.valueOf(failure.getMessage()).lines().findFirst().orElse("");
    }
}
