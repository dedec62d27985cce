import Effects
import Foundation

/// Records operations that can be undone and redone.
///
/// Foundation on Linux has none; this one has the interface and the rules of Apple's. An undo manager
/// belongs to one thread or one lane, as the context that it is given to does.
///
/// **Differs from Core Data:** groups by event end with the turn of the main queue where they began on
/// the main thread, and with the next `undo()` elsewhere; there are no selectors or invocations.
open class UndoManager: NSObject, @unchecked Sendable {
  // Sendable: used on the lane of whoever owns it.

  private var undoStack: [UndoGroup] = []
  private var redoStack: [UndoGroup] = []
  /// The groups that are open, the outermost first.
  private var openGroups: [UndoGroup] = []
  private var disablements = 0
  private var isEventGroupOpen = false

  /// Creates an undo manager with nothing to undo.
  public override init() {
    super.init()
  }

  // MARK: Groups

  /// Whether what is registered in one turn of the run loop is undone together.
  open var groupsByEvent = true

  /// How many groups can be undone; 0 for no limit.
  ///
  /// When there are more, the oldest are forgotten.
  open var levelsOfUndo = 0 {
    didSet { trim() }
  }

  /// The modes of the run loop in which groups by event end; kept and not used.
  open var runLoopModes: [RunLoop.Mode] = [.default]

  /// How many groups are open.
  open var groupingLevel: Int { openGroups.count }

  /// Begins a group, inside the one that is open.
  open func beginUndoGrouping() {
    if groupsByEvent, openGroups.isEmpty, !isUndoing, !isRedoing { openEventGroup() }
    openGroup()
  }

  /// Ends the group that was begun last.
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

  private func endEventGroup() {
    guard isEventGroupOpen, openGroups.count == 1, !isUndoing, !isRedoing else { return }
    closeGroup()
  }

  private func trim() {
    guard levelsOfUndo > 0, undoStack.count > levelsOfUndo else { return }
    undoStack.removeFirst(undoStack.count - levelsOfUndo)
  }

  // MARK: Registering

  /// Whether what is registered is kept.
  open var isUndoRegistrationEnabled: Bool { disablements == 0 }

  /// Has registrations ignored until they are enabled as often as they were disabled.
  open func disableUndoRegistration() {
    disablements += 1
  }

  /// Takes one `disableUndoRegistration()` back.
  open func enableUndoRegistration() {
    guard disablements > 0 else {
      preconditionFailure(
        "enableUndoRegistration: NSUndoManager \(place) is in invalid state, "
          + "enableUndoRegistration called with no matching disable"
      )
    }
    disablements -= 1
  }

  /// Registers what undoes the operation that is being done; the target is not kept alive.
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

  /// Forgets everything and enables registration.
  open func removeAllActions() {
    undoStack = []
    redoStack = []
    openGroups = []
    isEventGroupOpen = false
    disablements = 0
  }

  /// Forgets what would be done to a target.
  open func removeAllActions(withTarget target: Any) {
    // Where classes are all there is, a value has no identity and so no actions.
    removeActions(of: ObjectIdentifier(target as AnyObject))
  }

  final func removeActions(of identifier: ObjectIdentifier) {
    for group in openGroups { group.removeActions(of: identifier) }
    undoStack.removeAll { $0.removeActions(of: identifier) }
    redoStack.removeAll { $0.removeActions(of: identifier) }
  }

  // MARK: Undoing

  /// Whether an undo is under way.
  public private(set) var isUndoing = false
  /// Whether a redo is under way.
  public private(set) var isRedoing = false

  /// Whether there is something to undo.
  open var canUndo: Bool { !undoStack.isEmpty || openGroups.contains { !$0.isEmpty } }

  /// Whether there is something to redo.
  open var canRedo: Bool {
    post(.NSUndoManagerCheckpoint)
    return !redoStack.isEmpty
  }

  /// How many groups can be undone.
  open var undoCount: Int { undoStack.count }

  /// How many groups can be redone.
  open var redoCount: Int { redoStack.count }

  /// Ends the outermost group and undoes it, or the one before where none is open.
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

  /// Undoes the group that was ended last, which may be inside an open one.
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

  /// Does again what was undone last.
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

  /// What is registered meanwhile is one group on the other stack, of the same name.
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

  /// The group that names, and marks as discardable, are given to.
  private var current: UndoGroup? { openGroups.last ?? undoStack.last }

  private var nextUndo: UndoGroup? {
    if let open = openGroups.first, !open.isEmpty || !open.actionName.isEmpty { return open }
    return undoStack.last
  }

  /// Names what is being done, for menus.
  open func setActionName(_ actionName: String) {
    current?.actionName = actionName
    // The name of a whole is that of its last part, unless it has one of its own.
    for group in openGroups.dropLast() where group.actionName.isEmpty {
      group.actionName = actionName
    }
  }

  /// What `undo()` would undo, for menus; empty where it has no name.
  open var undoActionName: String { nextUndo?.actionName ?? "" }

  /// What `redo()` would do again, for menus; empty where it has no name.
  open var redoActionName: String { redoStack.last?.actionName ?? "" }

  /// The text of a menu's item that undoes.
  open var undoMenuItemTitle: String { undoMenuTitle(forUndoActionName: undoActionName) }

  /// The text of a menu's item that redoes.
  open var redoMenuItemTitle: String { redoMenuTitle(forUndoActionName: redoActionName) }

  /// The text of a menu's item that undoes what is named.
  open func undoMenuTitle(forUndoActionName actionName: String) -> String {
    actionName.isEmpty ? "Undo" : "Undo \(actionName)"
  }

  /// The text of a menu's item that redoes what is named.
  open func redoMenuTitle(forUndoActionName actionName: String) -> String {
    actionName.isEmpty ? "Redo" : "Redo \(actionName)"
  }

  /// Says whether what is being done can be lost without a question, as a scroll position can.
  open func setActionIsDiscardable(_ discardable: Bool) {
    current?.isDiscardable = discardable
  }

  /// Whether what `undo()` would undo can be lost without a question.
  open var undoActionIsDiscardable: Bool { nextUndo?.isDiscardable ?? false }

  /// Whether what `redo()` would do again can be lost without a question.
  open var redoActionIsDiscardable: Bool { redoStack.last?.isDiscardable ?? false }

  private var place: String { "0x\(String(UInt(bitPattern: hash), radix: 16))" }

  private func post(_ name: NSNotification.Name, _ userInfo: [AnyHashable: Any]? = nil) {
    NotificationCenter.default.post(name: name, object: self, userInfo: userInfo)
  }
}

/// The notification key that says whether a group that closes is discardable.
public let NSUndoManagerGroupIsDiscardableKey = "NSUndoManagerGroupIsDiscardableKey"

extension NSNotification.Name {
  /// Posted when a group is opened inside another or closed, and when undoing and redoing begins.
  public static let NSUndoManagerCheckpoint = NSNotification.Name(
    "NSUndoManagerCheckpointNotification"
  )
  /// Posted before something is undone.
  public static let NSUndoManagerWillUndoChange = NSNotification.Name(
    "NSUndoManagerWillUndoChangeNotification"
  )
  /// Posted before something is redone.
  public static let NSUndoManagerWillRedoChange = NSNotification.Name(
    "NSUndoManagerWillRedoChangeNotification"
  )
  /// Posted after something was undone.
  public static let NSUndoManagerDidUndoChange = NSNotification.Name(
    "NSUndoManagerDidUndoChangeNotification"
  )
  /// Posted after something was redone.
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
