/// One step of a random program: what an app does in one of its contexts.
///
/// Objects are numbered by the program. A step whose objects do not exist does nothing, so that any
/// part of a program is a program too.
enum ProgramStep: Equatable, Sendable {
  case insert(Int, _ kind: String)
  case name(Int, String?)
  case rank(Int, Int?)
  case toOne(Int, String, Int?)
  case add(Int, String, Int)
  case remove(Int, String, Int)
  case replace(Int, String, [Int])
  case delete(Int)
  /// Ends the turn.
  case process
  /// Compares everything that is visible in the context.
  case look
  case save
  /// A save that fails in the store.
  case failingSave
  case rollback
  case undo
  case redo
  case refresh(Int, merging: Bool)
  case refreshAll
  case reset
  /// Fetches all objects of an entity.
  case fetch(String)
  /// Batch requests, whose results are merged into all contexts.
  case batchInsert(Int, String)
  case batchRank(String, Int)
  case batchDelete(String)
  /// Merges the insertions of all saves again, some of whose objects were deleted since.
  case mergeAgain
  /// Releases all objects that need not be retained, so that they are created again when used.
  case release
}

/// A step and the number of the context that takes it.
struct ProgramLine: Equatable, Sendable, CustomStringConvertible {
  let context: Int
  let step: ProgramStep

  init(_ context: Int, _ step: ProgramStep) {
    self.context = context
    self.step = step
  }

  /// The source text for a test.
  var description: String { ".init(\(context), \(source))" }

  private var source: String {
    func text(_ value: String?) -> String { value.map { "\"\($0)\"" } ?? "nil" }
    func text(_ value: Int?) -> String { value.map { "\($0)" } ?? "nil" }
    return switch step {
    case .insert(let object, let kind): ".insert(\(object), \"\(kind)\")"
    case .name(let object, let name): ".name(\(object), \(text(name)))"
    case .rank(let object, let rank): ".rank(\(object), \(text(rank)))"
    case .toOne(let object, let key, let other): ".toOne(\(object), \"\(key)\", \(text(other)))"
    case .add(let object, let key, let other): ".add(\(object), \"\(key)\", \(other))"
    case .remove(let object, let key, let other): ".remove(\(object), \"\(key)\", \(other))"
    case .replace(let object, let key, let others): ".replace(\(object), \"\(key)\", \(others))"
    case .delete(let object): ".delete(\(object))"
    case .process: ".process"
    case .look: ".look"
    case .save: ".save"
    case .failingSave: ".failingSave"
    case .rollback: ".rollback"
    case .undo: ".undo"
    case .redo: ".redo"
    case .refresh(let object, let merging): ".refresh(\(object), merging: \(merging))"
    case .refreshAll: ".refreshAll"
    case .reset: ".reset"
    case .fetch(let kind): ".fetch(\"\(kind)\")"
    case .batchInsert(let object, let kind): ".batchInsert(\(object), \"\(kind)\")"
    case .batchRank(let kind, let rank): ".batchRank(\"\(kind)\", \(rank))"
    case .batchDelete(let kind): ".batchDelete(\"\(kind)\")"
    case .mergeAgain: ".mergeAgain"
    case .release: ".release"
    }
  }
}

extension ProgramStep {
  /// Stands for the code of any error of a store.
  static let anyCode = -1
  /// Stands for a save whose objects read other states in `didSave()` than its notification has.
  static let wrongStates = -2

  /// Whether a step ends the turn before it does anything else.
  var endsTurn: Bool {
    switch self {
    case .save, .failingSave, .rollback, .process, .look, .fetch, .refreshAll, .undo, .redo,
      .batchInsert,
      .batchRank, .batchDelete, .mergeAgain, .release:
      true
    default: false
    }
  }

  /// Whether a step changes nothing.
  var isRead: Bool {
    switch self {
    case .process, .look, .fetch, .mergeAgain, .release, .refresh, .refreshAll: true
    default: false
    }
  }

  /// Whether a step writes to the store, or tries to.
  var mayWrite: Bool {
    switch self {
    case .save, .failingSave, .batchInsert, .batchRank, .batchDelete: true
    default: false
    }
  }

  /// Whether a step can be undone.
  var changesObjects: Bool {
    switch self {
    case .insert, .name, .rank, .toOne, .add, .remove, .replace, .delete: true
    default: false
    }
  }
}
