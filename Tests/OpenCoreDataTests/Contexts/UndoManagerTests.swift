import Foundation
import OpenCoreData
import Testing

@Suite("The undo manager")
struct UndoManagerTests {
  /// A counter whose changes can be undone.
  private final class Counter {
    let manager: UndoManager
    private(set) var value = 0

    init(_ manager: UndoManager) { self.manager = manager }

    func set(_ new: Int) {
      let old = value
      manager.registerUndo(withTarget: self) { $0.set(old) }
      value = new
    }
  }

  private func group(_ manager: UndoManager, _ name: String? = nil, _ body: () -> Void) {
    manager.beginUndoGrouping()
    body()
    if let name { manager.setActionName(name) }
    manager.endUndoGrouping()
  }

  @Test("Groups are undone and redone one by one, the last first")
  func groups() {
    let manager = UndoManager.manual()
    let counter = Counter(manager)
    #expect(!manager.canUndo && !manager.canRedo)
    group(manager) {
      counter.set(1); counter.set(2)
    }
    group(manager) { counter.set(3) }
    #expect(manager.canUndo)
    manager.undo()
    #expect(counter.value == 2)
    #expect(manager.canRedo)
    manager.undo()
    #expect(counter.value == 0)
    #expect(!manager.canUndo)
    manager.redo()
    #expect(counter.value == 2)
    manager.redo()
    #expect(counter.value == 3)
    #expect(!manager.canRedo)
  }

  @Test("A new operation clears the redo stack")
  func redoIsForgotten() {
    let manager = UndoManager.manual()
    let counter = Counter(manager)
    group(manager) { counter.set(1) }
    manager.undo()
    group(manager) { counter.set(5) }
    #expect(!manager.canRedo)
  }

  @Test("By default all operations of one event form one group that contains explicit groups")
  func events() {
    let manager = UndoManager()
    let counter = Counter(manager)
    counter.set(1)
    #expect(manager.groupingLevel == 1)
    group(manager) { counter.set(2) }
    manager.beginUndoGrouping()
    #expect(manager.groupingLevel == 2)
    counter.set(3)
    manager.endUndoGrouping()
    manager.undoNestedGroup()
    #expect(counter.value == 2)
    manager.undo()
    #expect(counter.value == 0)
    #expect(manager.groupingLevel == 0)
  }

  @Test("At most the set number of levels is kept")
  func levels() {
    let manager = UndoManager.manual()
    manager.levelsOfUndo = 2
    let counter = Counter(manager)
    for value in 1...4 { group(manager) { counter.set(value) } }
    manager.undo()
    manager.undo()
    #expect(counter.value == 2)
    #expect(!manager.canUndo)
  }

  @Test("Operations are not recorded while registration is disabled")
  func disabled() {
    let manager = UndoManager.manual()
    let counter = Counter(manager)
    manager.disableUndoRegistration()
    manager.disableUndoRegistration()
    manager.enableUndoRegistration()
    #expect(!manager.isUndoRegistrationEnabled)
    counter.set(1)
    manager.enableUndoRegistration()
    #expect(manager.isUndoRegistrationEnabled)
    #expect(!manager.canUndo)
  }

  @Test("Action names belong to groups and move with them to the other stack")
  func names() {
    let manager = UndoManager.manual()
    let counter = Counter(manager)
    #expect(manager.undoMenuItemTitle == "Undo")
    group(manager, "Typing") { counter.set(1) }
    #expect(manager.undoActionName == "Typing")
    #expect(manager.undoMenuItemTitle == "Undo Typing")
    manager.undo()
    #expect(manager.undoActionName == "")
    #expect(manager.redoActionName == "Typing")
    #expect(manager.redoMenuItemTitle == "Redo Typing")
    manager.redo()
    #expect(manager.undoActionName == "Typing")
  }

  @Test("Actions can be removed for one target or all; targets are not retained")
  func removing() {
    let manager = UndoManager.manual()
    let one = Counter(manager)
    var other: Counter? = Counter(manager)
    group(manager) { one.set(1) }
    group(manager) { other?.set(1) }
    manager.removeAllActions(withTarget: one)
    #expect(manager.canUndo)
    other = nil
    manager.undo()
    group(manager) { one.set(7) }
    manager.removeAllActions()
    #expect(!manager.canUndo)
    #expect(one.value == 7)
  }

  @Test("Undoing and redoing are reported during, before and after")
  func notifications() {
    let manager = UndoManager.manual()
    let counter = Counter(manager)
    final class Names: @unchecked Sendable {
      var all: [String] = []
    }
    let names = Names()
    let kinds: [(NSNotification.Name, String)] = [
      (.NSUndoManagerWillUndoChange, "will undo"), (.NSUndoManagerDidUndoChange, "did undo"),
      (.NSUndoManagerWillRedoChange, "will redo"), (.NSUndoManagerDidRedoChange, "did redo"),
      (.NSUndoManagerDidOpenUndoGroup, "open"), (.NSUndoManagerDidCloseUndoGroup, "close"),
    ]
    let tokens = kinds.map { name, text in
      NotificationCenter.default.addObserver(forName: name, object: manager, queue: nil) { _ in
        names.all.append(text)
      }
    }
    defer { for token in tokens { NotificationCenter.default.removeObserver(token) } }
    group(manager) {
      manager.registerUndo(withTarget: counter) { _ in
        names.all.append(manager.isUndoing ? "undoing" : "?")
        manager.registerUndo(withTarget: counter) { _ in
          names.all.append(manager.isRedoing ? "redoing" : "?")
        }
      }
    }
    manager.undo()
    manager.redo()
    #expect(
      names.all == [
        "open", "close", "will undo", "open", "undoing", "close", "did undo",
        "will redo", "open", "redoing", "close", "did redo",
      ]
    )
  }

  @Test("Ending a group that was not begun stops the program")
  func unbalanced() async {
    await #expect(processExitsWith: .failure) { UndoManager().endUndoGrouping() }
  }

  @Test("Without groups by event, registering outside a group stops the program")
  func noGroup() async {
    await #expect(processExitsWith: .failure) {
      let manager = UndoManager.manual()
      manager.registerUndo(withTarget: manager) { _ in }
    }
  }
}
