import Effects
import Foundation

/// Records operations that can be undone and redone.
///
/// ```swift
/// let undoManager = UndoManager()
/// context.undoManager = undoManager
/// post.title = "Final"
/// undoManager.setActionName("Rename")
/// context.undo()  // post.title is "Draft" again
/// context.redo()  // post.title is "Final"
/// ```
///
/// Foundation on Linux has none; this one has the interface and the rules of Apple's. An undo
/// manager belongs to one thread or one queue, as its context does.
///
/// **Differs from Core Data:** groups by event end with the current event of the main queue where they
/// began on the main thread, and with the next `undo()` elsewhere; there are no selectors or invocations.
open class UndoManager: NSObject, @unchecked Sendable {
  // Sendable: used on its owner's lane.

  private var undoStack: [UndoGroup] = []
  private var redoStack: [UndoGroup] = []
  /// The open groups, the outermost first.
  private var openGroups: [UndoGroup] = []
  private var disablements = 0
  private var isEventGroupOpen = false

  /// Creates an undo manager with nothing to undo.
  public override init() {
    super.init()
  }

  // MARK: Groups

  /// Whether the operations registered in one pass of the run loop are undone together.
  open var groupsByEvent = true

  /// The limit of groups that can be undone; 0 for no limit.
  ///
  /// If there are more, the oldest are removed.
  open var levelsOfUndo = 0 {
    didSet { trim() }
  }

  /// The modes of the run loop in which groups by event end; stored, but without effect.
  open var runLoopModes: [RunLoop.Mode] = [.default]

  /// The number of open groups.
  open var groupingLevel: Int { openGroups.count }

  /// Begins a group, nested in the open one.
  open func beginUndoGrouping() {
    if groupsByEvent, openGroups.isEmpty, !isUndoing, !isRedoing { openEventGroup() }
    openGroup()
  }

  /// Ends the innermost group.
  open func endUndoGrouping() {
    guard !openGroups.isEmpty else {
      preconditionFailure(
        "endUndoGrouping: NSUndoManager \(place) is in invalid state, endUndoGrouping called with "
          + "no matching begin"
      )
    }
    closeGroup()
  }

  private func openGroup() {
    if !openGroups.isEmpty { post(.NSUndoManagerCheckpoint) }
    openGroups.append(UndoGroup())
    post(.NSUndoManagerDidOpenUndoGroup)
  }

  private func closeGroup() {
    post(.NSUndoManagerCheckpoint)
    guard let group = openGroups.last else { return }
    post(
      .NSUndoManagerWillCloseUndoGroup,
      [NSUndoManagerGroupIsDiscardableKey: group.isDiscardable]
    )
    openGroups.removeLast()
    if let parent = openGroups.last {
      parent.take(group)
    } else {
      isEventGroupOpen = false
      if isUndoing {
        redoStack.append(group)
      } else {
        undoStack.append(group)
        trim()
      }
    }
    post(.NSUndoManagerDidCloseUndoGroup)
  }

  private func openEventGroup() {
    openGroup()
    isEventGroupOpen = true
    guard Lane.main.isCurrent else { return }
    Lane.main.async { [weak self] in self?.endEventGroup() }
  }

  /// Runs the end of an event; the event's group ends with it if the body opens it.
  final func endingGroup(_ body: () -> Void) {
    let wasOpen = isEventGroupOpen
    body()
    if !wasOpen { endEventGroup() }
  }

  private func endEventGroup() {
    guard isEventGroupOpen, openGroups.count == 1, !isUndoing, !isRedoing else { return }
    closeGroup()
  }

  private func trim() {
    guard levelsOfUndo > 0, undoStack.count > levelsOfUndo else { return }
    undoStack.removeFirst(undoStack.count - levelsOfUndo)
  }

  // MARK: Registering

  /// Whether registered operations are recorded.
  open var isUndoRegistrationEnabled: Bool { disablements == 0 }

  /// Disables registration until it is enabled as often as it was disabled.
  open func disableUndoRegistration() {
    disablements += 1
  }

  /// Reverts one `disableUndoRegistration()`.
  open func enableUndoRegistration() {
    guard disablements > 0 else {
      preconditionFailure(
        "enableUndoRegistration: NSUndoManager \(place) is in invalid state, "
          + "enableUndoRegistration called with no matching disable"
      )
    }
    disablements -= 1
  }

  /// Registers the inverse of the current operation; the target is held weakly.
  public func registerUndo<TargetType: AnyObject>(
    withTarget target: TargetType,
    handler: @escaping (TargetType) -> Void
  ) {
    guard isUndoRegistrationEnabled else { return }
    if openGroups.isEmpty {
      guard groupsByEvent else {
        preconditionFailure(
          "registerUndoWithTarget:handler:: NSUndoManager \(place) is in invalid state, must begin a "
            + "group before registering undo"
        )
      }
      openEventGroup()
    }
    if !isUndoing, !isRedoing { redoStack = [] }
    openGroups.last?.add(
      UndoAction(target: target) { target in
        if let target = target as? TargetType { handler(target) }
      }
    )
  }

  /// Removes all actions and enables registration.
  open func removeAllActions() {
    undoStack = []
    redoStack = []
    openGroups = []
    isEventGroupOpen = false
    disablements = 0
  }

  /// Removes the actions of a target.
  open func removeAllActions(withTarget target: Any) {
    // A value without identity has no actions.
    removeActions(of: ObjectIdentifier(target as AnyObject))
  }

  final func removeActions(of identifier: ObjectIdentifier) {
    for group in openGroups { group.removeActions(of: identifier) }
    undoStack.removeAll { $0.removeActions(of: identifier) }
    redoStack.removeAll { $0.removeActions(of: identifier) }
  }

  // MARK: Undoing

  /// Whether an undo is in progress.
  public private(set) var isUndoing = false
  /// Whether a redo is in progress.
  public private(set) var isRedoing = false

  /// Whether there is something to undo.
  open var canUndo: Bool { !undoStack.isEmpty || openGroups.contains { !$0.isEmpty } }

  /// Whether there is something to redo.
  open var canRedo: Bool {
    post(.NSUndoManagerCheckpoint)
    return !redoStack.isEmpty
  }

  /// The number of groups that can be undone.
  open var undoCount: Int { undoStack.count }

  /// The number of groups that can be redone.
  open var redoCount: Int { redoStack.count }

  /// Ends the outermost group and undoes it, or the previous one if none is open.
  open func undo() {
    post(.NSUndoManagerCheckpoint)
    if openGroups.count == 1 { closeGroup() }
    guard openGroups.isEmpty else {
      preconditionFailure(
        "undo: NSUndoManager \(place) is in invalid state, undo was called with too many nested "
          + "undo groups"
      )
    }
    undoNestedGroup()
  }

  /// Undoes the group that ended last, which may be nested in an open one.
  open func undoNestedGroup() {
    post(.NSUndoManagerCheckpoint)
    precondition(
      !isUndoing && !isRedoing,
      "undoNestedGroup: NSUndoManager is in invalid state, it is undoing or redoing"
    )
    let group: UndoGroup
    if let open = openGroups.last {
      guard let nested = open.popLastGroup() else { return }
      group = nested
    } else {
      guard let last = undoStack.popLast() else { return }
      group = last
    }
    post(.NSUndoManagerWillUndoChange)
    isUndoing = true
    perform(group)
    isUndoing = false
    post(.NSUndoManagerDidUndoChange)
  }

  /// Redoes the group that was undone last.
  open func redo() {
    post(.NSUndoManagerCheckpoint)
    precondition(
      !isUndoing && !isRedoing,
      "redo: NSUndoManager is in invalid state, it is undoing or redoing"
    )
    guard let group = redoStack.popLast() else { return }
    post(.NSUndoManagerWillRedoChange)
    isRedoing = true
    perform(group)
    isRedoing = false
    post(.NSUndoManagerDidRedoChange)
  }

  /// Undoes a group: the actions registered meanwhile form one group of the same name on the other
  /// stack.
  private func perform(_ group: UndoGroup) {
    let open = openGroups
    let wasEventGroupOpen = isEventGroupOpen
    openGroups = []
    openGroup()
    openGroups.last?.takeName(of: group)
    group.perform()
    // Handlers may have left groups open.
    while !openGroups.isEmpty { closeGroup() }
    openGroups = open
    isEventGroupOpen = wasEventGroupOpen
  }

  // MARK: Names

  /// The group that the action name and the discardable flag apply to.
  private var current: UndoGroup? { openGroups.last ?? undoStack.last }

  private var nextUndo: UndoGroup? {
    if let open = openGroups.first, !open.isEmpty || !open.actionName.isEmpty { return open }
    return undoStack.last
  }

  /// Sets the action name for menus.
  open func setActionName(_ actionName: String) {
    current?.actionName = actionName
    // An outer group has the name of its last nested group, unless it has its own.
    for group in openGroups.dropLast() where group.actionName.isEmpty {
      group.actionName = actionName
    }
  }

  /// The name of the action that `undo()` would undo, for menus; empty if it has none.
  open var undoActionName: String { nextUndo?.actionName ?? "" }

  /// The name of the action that `redo()` would redo, for menus; empty if it has none.
  open var redoActionName: String { redoStack.last?.actionName ?? "" }

  /// The title of the Undo menu item.
  open var undoMenuItemTitle: String { undoMenuTitle(forUndoActionName: undoActionName) }

  /// The title of the Redo menu item.
  open var redoMenuItemTitle: String { redoMenuTitle(forUndoActionName: redoActionName) }

  /// The title of an Undo menu item for an action name.
  open func undoMenuTitle(forUndoActionName actionName: String) -> String {
    actionName.isEmpty ? "Undo" : "Undo \(actionName)"
  }

  /// The title of a Redo menu item for an action name.
  open func redoMenuTitle(forUndoActionName actionName: String) -> String {
    actionName.isEmpty ? "Redo" : "Redo \(actionName)"
  }

  /// Sets whether the current action can be discarded without asking the user, such as a scroll
  /// position.
  open func setActionIsDiscardable(_ discardable: Bool) {
    current?.isDiscardable = discardable
  }

  /// Whether the action that `undo()` would undo is discardable.
  open var undoActionIsDiscardable: Bool { nextUndo?.isDiscardable ?? false }

  /// Whether the action that `redo()` would redo is discardable.
  open var redoActionIsDiscardable: Bool { redoStack.last?.isDiscardable ?? false }

  private var place: String { "0x\(String(UInt(bitPattern: hash), radix: 16))" }

  private func post(_ name: NSNotification.Name, _ userInfo: [AnyHashable: Any]? = nil) {
    NotificationCenter.default.post(name: name, object: self, userInfo: userInfo)
  }
}

/// The notification key for whether a group that closes is discardable.
public let NSUndoManagerGroupIsDiscardableKey = "NSUndoManagerGroupIsDiscardableKey"

extension NSNotification.Name {
  /// Posted when a nested group is opened or a group is closed, and before undo and redo.
  public static let NSUndoManagerCheckpoint = NSNotification.Name(
    "NSUndoManagerCheckpointNotification"
  )
  /// Posted before an undo.
  public static let NSUndoManagerWillUndoChange = NSNotification.Name(
    "NSUndoManagerWillUndoChangeNotification"
  )
  /// Posted before a redo.
  public static let NSUndoManagerWillRedoChange = NSNotification.Name(
    "NSUndoManagerWillRedoChangeNotification"
  )
  /// Posted after an undo.
  public static let NSUndoManagerDidUndoChange = NSNotification.Name(
    "NSUndoManagerDidUndoChangeNotification"
  )
  /// Posted after a redo.
  public static let NSUndoManagerDidRedoChange = NSNotification.Name(
    "NSUndoManagerDidRedoChangeNotification"
  )
  /// Posted after a group was opened.
  public static let NSUndoManagerDidOpenUndoGroup = NSNotification.Name(
    "NSUndoManagerDidOpenUndoGroupNotification"
  )
  /// Posted before a group is closed.
  public static let NSUndoManagerWillCloseUndoGroup = NSNotification.Name(
    "NSUndoManagerWillCloseUndoGroupNotification"
  )
  /// Posted after a group was closed.
  public static let NSUndoManagerDidCloseUndoGroup = NSNotification.Name(
    "NSUndoManagerDidCloseUndoGroupNotification"
  )
}
