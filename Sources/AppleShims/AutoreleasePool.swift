#if !canImport(ObjectiveC)
/// Calls a closure; there is no pool, because objects are released when their last use ends.
///
/// ```swift
/// let numbers = autoreleasepool { texts.compactMap { Int($0) } }
/// ```
public func autoreleasepool<Result>(
  invoking body: () throws -> Result
) rethrows -> Result {
  try body()
}
#endif
