#if !canImport(Combine)
/// An object whose changes can be observed, on Apple's platforms; here a name alone, without publishers.
///
/// ```swift
/// final class Counter: ObservableObject {
///   @Published var count = 0
/// }
/// ```
///
/// Foundation brings Combine's protocol on Apple's platforms. To observe changes on Linux too, use OpenCombine, whose
/// names a file that imports both writes with their module.
public protocol ObservableObject: AnyObject {}

/// A property that publishes its changes on Apple's platforms; here it holds its value and publishes nothing.
@propertyWrapper
public struct Published<Value> {
  /// The value of the property.
  public var wrappedValue: Value

  /// Creates the property with a value.
  public init(wrappedValue: Value) {
    self.wrappedValue = wrappedValue
  }

  /// Creates the property with a value.
  public init(initialValue: Value) {
    wrappedValue = initialValue
  }
}

extension Published: Sendable where Value: Sendable {}
#endif
