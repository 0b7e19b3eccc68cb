package org.apache.iceberg;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContextProvider;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.HierarchyTraversalMode;
import tableformat.suite.ParameterSets;

/** In place of Iceberg's class of this name: its parameter sets without those that are one to us. */
public class ParameterizedTestExtension implements TestTemplateInvocationContextProvider {
  @Override public boolean supportsTestTemplate(ExtensionContext context) {
    return true;
  }

  @Override public Stream<TestTemplateInvocationContext> provideTestTemplateInvocationContexts(ExtensionContext context) {
    Class<?> type = context.getRequiredTestClass();
    Method provider =
        AnnotationSupport.findAnnotatedMethods(type, Parameters.class, HierarchyTraversalMode.BOTTOM_UP).get(0);
    List<Field> fields =
        AnnotationSupport.findAnnotatedFields(type, Parameter.class, field -> true, HierarchyTraversalMode.BOTTOM_UP);
    Object given;
    try {
      provider.setAccessible(true);
      given = provider.invoke(null);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("no parameters from " + provider, e);
    }
    Map<Integer, String> names =
        fields.stream().collect(Collectors.toMap(field -> field.getAnnotation(Parameter.class).index(), Field::getName, (a, b) -> a));
    return ParameterSets.of(given, names).stream().map(set -> new Invocation(set, fields));
  }

  private record Invocation(Object[] set, List<Field> fields) implements TestTemplateInvocationContext, BeforeEachCallback {
    @Override public String getDisplayName(int number) {
      return Arrays.stream(set).filter(value -> !(value instanceof Map)).toList().toString();
    }

    @Override public List<Extension> getAdditionalExtensions() {
      return List.of(this);
    }

    @Override public void beforeEach(ExtensionContext context) throws IllegalAccessException {
      for (Field field : fields) {
        field.setAccessible(true);
        field.set(context.getRequiredTestInstance(), set[field.getAnnotation(Parameter.class).index()]);
      }
    }
  }
}
