import com.fasterxml.jackson.databind.ObjectMapper;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.IcebergBuild;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Types;

/** Reads Iceberg tables with Iceberg's Java library (its generic reader), and prints a line of JSON for each. */
class ReadTables {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] paths) throws Exception {
        HadoopFileIO io = new HadoopFileIO(new Configuration());
        for (String path : paths) {
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("reader", "Iceberg Java " + IcebergBuild.version());
            try {
                answer.put("rows", read(new BaseTable(new StaticTableOperations(path, io), path)));
            } catch (Throwable error) {
                answer.put("error", error.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static List<Object> read(Table table) throws Exception {
        List<Object> rows = new ArrayList<>();
        try (CloseableIterable<Record> records = IcebergGenerics.read(table).build()) {
            for (Record record : records) {
                rows.add(fields(record, table.schema().asStruct()));
            }
        }
        return rows;
    }

    /** Records may have fields beyond those of the table, such as positions that deletes were looked up by. */
    static Object fields(Record record, Types.StructType type) {
        Map<String, Object> fields = new LinkedHashMap<>();
        for (Types.NestedField field : type.fields()) {
            fields.put(field.name(), value(record.getField(field.name())));
        }
        return fields;
    }

    /** A value in the form of the corpus. */
    private static Object value(Object value) {
        if (value instanceof Record record) {
            return fields(record, record.struct());
        }
        if (value instanceof List<?> list) {
            List<Object> elements = new ArrayList<>();
            list.forEach(element -> elements.add(value(element)));
            return elements;
        }
        if (value instanceof Map<?, ?> map) {
            List<Object> pairs = new ArrayList<>();
            map.forEach((key, entry) -> pairs.add(List.of(value(key), value(entry))));
            return pairs;
        }
        if (value instanceof ByteBuffer buffer) {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            return HexFormat.of().formatHex(bytes);
        }
        if (value instanceof byte[] bytes) {
            return HexFormat.of().formatHex(bytes);
        }
        if (value instanceof Float || value instanceof Double) {
            double number = ((Number) value).doubleValue();
            return Double.isFinite(number) ? (Object) number : String.valueOf(number);
        }
        if (value == null || value instanceof Number && !(value instanceof BigDecimal) || value instanceof Boolean) {
            return value;
        }
        return value.toString();
    }
}
