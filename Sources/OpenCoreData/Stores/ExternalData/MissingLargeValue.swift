/// The file of a large value is gone, although a row names it.
///
/// Another process may have replaced the value since the read transaction began, and removed the file
/// of the former one. So the read is repeated in a new transaction; only if the newest row names a
/// missing file as well is the value lost.
struct MissingLargeValue: Error {
  /// How often a read is repeated while other processes replace values.
  static let attempts = 4
}

extension StoreConnection {
  /// Runs a read that throws ``MissingLargeValue`` instead of making a missing file nil.
  func requiringFiles<Result>(_ body: () throws -> Result) rethrows -> Result {
    let before = builder.requiresFiles
    builder.requiresFiles = true
    defer { builder.requiresFiles = before }
    return try body()
  }
}
