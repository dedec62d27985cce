import OpenCoreData

extension UndoManager {
  /// A manager whose groups a test begins and ends itself.
  static func manual() -> UndoManager {
    let manager = UndoManager()
    manager.groupsByEvent = false
    return manager
  }

  /// Runs a body as one group, which is undone in one step.
  func step(_ body: () throws -> Void) rethrows {
    beginUndoGrouping()
    try body()
    endUndoGrouping()
  }
}
