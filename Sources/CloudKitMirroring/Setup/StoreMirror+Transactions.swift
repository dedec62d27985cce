/// Write transactions of a mirror, in which the history is folded first.
extension StoreMirror {
  /// Runs the body once the history is folded up to its end, in one transaction with the last part of it; where
  /// some of it was deleted before, once all objects were compared.
  ///
  /// A long history is folded in several transactions first, so that the app can save between them; the body sees
  /// every save under the lock. A call of the app does not end with the task that makes it.
  package func writeFolded<Result>(
    _ author: String,
    isCancellable: Bool = true,
    _ body: (MirrorSession) throws -> Result
  ) throws -> Result {
    while true {
      let result: Result? = try write(author) { session in
        guard try session.foldHistory(limit: MirrorSession.foldLimit).isComplete else { return nil }
        // Saves whose history was purged are found by comparing all objects.
        if try session.hasGapToScan(), try session.scan(limit: MirrorSession.foldLimit) {
          return nil
        }
        return try body(session)
      }
      if let result { return result }
      if isCancellable { try Task.checkCancellation() }
    }
  }
}
