/// An operation that undoes another; it holds its target weakly.
struct UndoAction {
  let identifier: ObjectIdentifier
  private weak var target: AnyObject?
  private let handler: (AnyObject) -> Void

  init(target: AnyObject, handler: @escaping (AnyObject) -> Void) {
    identifier = ObjectIdentifier(target)
    self.target = target
    self.handler = handler
  }

  func perform() {
    if let target { handler(target) }
  }
}

/// Operations that are undone together, in reverse order.
final class UndoGroup {
  private enum Item {
    case action(UndoAction)
    case group(UndoGroup)
  }

  private var items: [Item] = []
  var actionName = ""
  var isDiscardable = false

  /// Whether the group and its nested groups have no actions.
  var isEmpty: Bool {
    items.allSatisfy { item in
      if case .group(let group) = item { return group.isEmpty }
      return false
    }
  }

  func add(_ action: UndoAction) {
    items.append(.action(action))
  }

  /// Adds a nested group that has ended.
  func take(_ group: UndoGroup) {
    items.append(.group(group))
    if !group.actionName.isEmpty { actionName = group.actionName }
  }

  func takeName(of group: UndoGroup) {
    actionName = group.actionName
    isDiscardable = group.isDiscardable
  }

  func popLastGroup() -> UndoGroup? {
    guard case .group(let group)? = items.last else { return nil }
    items.removeLast()
    return group
  }

  func perform() {
    for item in items.reversed() {
      switch item {
      case .action(let action): action.perform()
      case .group(let group): group.perform()
      }
    }
  }

  /// Removes the target's actions; returns whether it had any and is empty now.
  @discardableResult
  func removeActions(of target: ObjectIdentifier) -> Bool {
    let count = items.count
    items.removeAll { item in
      switch item {
      case .action(let action): action.identifier == target
      case .group(let group): group.removeActions(of: target)
      }
    }
    return items.isEmpty && items.count < count
  }
}
