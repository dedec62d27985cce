import OpenCoreData

/// A store and its contexts, as plain values.
struct ReferenceWorld {
  typealias Relationship = GraphSchema.Relationship

  /// The result of a step.
  enum Outcome: Equatable {
    /// The step did not apply.
    case skipped
    case done
    /// A save succeeded and its notification had these objects.
    case saved(SavedNumbers)
    /// A save failed with an error of this code.
    case failed(Int)
  }

  struct SavedNumbers: Equatable {
    var inserted: Set<Int> = []
    var updated: Set<Int> = []
    var deleted: Set<Int> = []
  }

  let layout: ProgramLayout
  var store = ReferenceGraph()
  var versions: [Int: Int] = [:]
  var contexts: [ReferenceContext]
  /// All numbers that objects had at any time.
  var numbers: Set<Int> = []

  init(_ layout: ProgramLayout) {
    self.layout = layout
    contexts = [ReferenceContext](repeating: ReferenceContext(), count: layout.contexts)
  }

  // MARK: Steps

  /// Runs a step if it applies.
  mutating func perform(_ line: ProgramLine) -> Outcome {
    let index = line.context
    guard contexts.indices.contains(index), applies(line.step, in: contexts[index]),
      isAllowed(line.step, index)
    else { return .skipped }
    let before = contexts[index].undoState
    if layout.hasTurns || line.step.endsTurn { contexts[index].endTurn() }
    switch line.step {
    case .insert(let object, _): numbers.insert(object)
    case .save: return save(index)
    case .failingSave:
      return contexts[index].hasWork ? .failed(ProgramStep.anyCode) : save(index)
    case .rollback: rollBack(index)
    case .reset: read(index)
    case .batchInsert, .batchRank, .batchDelete: return batch(line.step)
    case .refresh(let object, _): contexts[index].dropEqualChanges(of: object)
    case .undo: undo(index)
    case .redo: redo(index)
    case .refreshAll:
      contexts[index].dropEqualChanges()
      if layout.kind == .conflicting { read(index) }
    case .process, .look, .fetch, .mergeAgain, .release: return .done
    default: break
    }
    change(line.step, in: &contexts[index])
    if layout.hasTurns { contexts[index].endTurn() }
    if layout.kind == .undoing, line.step.changesObjects {
      contexts[index].undos.append(before)
      contexts[index].redos = []
    }
    // The child reads the parent's own changes again.
    if layout.kind == .child, index == 0, !line.step.isRead { read(1) }
    return .done
  }

  private mutating func rollBack(_ index: Int) {
    contexts[index].dropChanges()
    if layout.kind == .conflicting { read(index) }
  }

  private mutating func undo(_ index: Int) {
    guard let state = contexts[index].undos.popLast() else { return }
    contexts[index].redos.append(contexts[index].undoState)
    contexts[index].show(state)
  }

  private mutating func redo(_ index: Int) {
    guard let state = contexts[index].redos.popLast() else { return }
    contexts[index].undos.append(contexts[index].undoState)
    contexts[index].show(state)
  }

  /// The steps that change objects.
  func change(_ step: ProgramStep, in context: inout ReferenceContext) {
    switch step {
    case .insert(let object, let kind): context.insert(object, kind)
    case .name(let object, let name): context.setName(object, name)
    case .rank(let object, let rank): context.setRank(object, rank)
    case .delete(let object): context.delete(object)
    case .toOne(let object, let key, let other):
      guard let relationship = context.relationship(object, key) else { return }
      context.setToOne(object, relationship, other)
    case .add(let object, let key, let other):
      guard let relationship = context.relationship(object, key) else { return }
      context.add(other, to: object, relationship)
    case .remove(let object, let key, let other):
      guard let relationship = context.relationship(object, key) else { return }
      context.remove(other, from: object, relationship)
    case .replace(let object, let key, let others):
      guard let relationship = context.relationship(object, key) else { return }
      context.replace(object, relationship, others)
    default: break
    }
  }
}
