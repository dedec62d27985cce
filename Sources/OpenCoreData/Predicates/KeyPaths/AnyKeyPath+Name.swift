extension AnyKeyPath {
  /// The name that key-value coding has for the key path, or nil where it reads no modeled property.
  ///
  /// Swift's own property of this name, which libraries for Core Data use, asks Objective-C and is always nil
  /// on Linux. This one takes its place in files that import the module.
  public var _kvcKeyPathString: String? { KeyPathNames.name(of: self) }
}
