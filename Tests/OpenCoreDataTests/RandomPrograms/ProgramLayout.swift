import OpenCoreData

/// The contexts of a random program, and the steps that they may take.
struct ProgramLayout: Sendable, CustomStringConvertible {
  enum Kind: Equatable, Sendable {
    /// One context.
    case single
    /// Contexts of one coordinator, each of which merges every save of the others.
    case merging
    /// Contexts of one coordinator that do not merge, and meet the others' saves as conflicts.
    case conflicting
    /// A context and its child.
    case child
    /// One context with an undo manager.
    case undoing
  }

  let kind: Kind
  /// The source text of the layout in a test.
  let description: String
  var contexts = 1
  /// Whether each step is a turn of its own, in `performAndWait`; if not, a program's `process`
  /// steps end turns.
  var hasTurns = true
  var policy = NSMergePolicy.error
  /// Relationships that programs of this layout do not change, by the name of the pair's first
  /// side.
  var leftOut: Set<String> = []
  var deletes = true
  /// Whether names of stamps and tickets are unique.
  var isUnique = false
  /// Whether each context has a coordinator of its own on one file, and merges the others' history.
  var sharesFile = false

  var hasBatches: Bool { !sharesFile && (kind == .single || kind == .merging) }

  /// Whether insertions are merged a second time, as by a reader of the history that is behind.
  var hasLateMerges: Bool { kind == .single || kind == .merging }

  /// Whether the test can make the store fail saves.
  var hasFailures: Bool { kind == .single && sharesFile }

  /// It is not documented which order wins if two contexts change it.
  var comparesOrder: Bool { kind != .merging }

  func uses(_ relationship: GraphSchema.Relationship) -> Bool {
    !leftOut.contains(GraphSchema.pairs[relationship.pair].sides[0].name)
  }

  static let single = ProgramLayout(kind: .single, description: ".single")

  static let singleWithoutTurns = ProgramLayout(
    kind: .single,
    description: ".singleWithoutTurns",
    hasTurns: false
  )

  static let unique = ProgramLayout(kind: .single, description: ".unique", isUnique: true)

  static let failing = ProgramLayout(kind: .single, description: ".failing", sharesFile: true)

  static let coordinators = ProgramLayout(
    kind: .merging,
    description: ".coordinators",
    contexts: 2,
    policy: .mergeByPropertyObjectTrump,
    leftOut: ["locker"],
    sharesFile: true
  )

  static let undoing = ProgramLayout(kind: .undoing, description: ".undoing")

  /// It is not documented which end of a one-to-one relationship wins.
  static let merging = ProgramLayout(
    kind: .merging,
    description: ".merging",
    contexts: 2,
    policy: .mergeByPropertyObjectTrump,
    leftOut: ["locker"]
  )

  static let conflicting = ProgramLayout(
    kind: .conflicting,
    description: ".conflicting",
    contexts: 2,
    leftOut: ["locker"]
  )

  static let objectTrump = ProgramLayout(
    kind: .conflicting,
    description: ".objectTrump",
    contexts: 2,
    policy: .mergeByPropertyObjectTrump,
    leftOut: ["locker", "tickets"],
    deletes: false
  )

  static let overwrite = ProgramLayout(
    kind: .conflicting,
    description: ".overwrite",
    contexts: 2,
    policy: .overwrite,
    leftOut: ["locker", "tickets"],
    deletes: false
  )

  /// The links of a many-to-many relationship belong to two objects, one of which may be in
  /// conflict.
  static let storeTrump = ProgramLayout(
    kind: .conflicting,
    description: ".storeTrump",
    contexts: 2,
    policy: .mergeByPropertyStoreTrump,
    leftOut: ["locker", "tickets", "clubs"],
    deletes: false
  )

  /// Objects to which a denied deletion refers are missing in a child.
  static let child = ProgramLayout(
    kind: .child,
    description: ".child",
    contexts: 2,
    leftOut: ["debts", "locker"]
  )

  static let all = [
    single, singleWithoutTurns, unique, failing, undoing, merging, coordinators, conflicting,
    objectTrump,
    overwrite, storeTrump,
    child,
  ]
}
