import Effects

/// A program of random steps, most of which apply.
struct RandomProgram {
  let layout: ProgramLayout
  let lines: [ProgramLine]

  /// The program of a seed; the reference provides the existing objects.
  init(_ layout: ProgramLayout, seed: UInt64) {
    let dice = Dice(seed: seed)
    var world = ReferenceWorld(layout)
    var lines: [ProgramLine] = []
    let count = 5 + dice.below(35)
    // Some programs compare after each step, and some only at the end, when many objects are still
    // faults.
    let looks = [0, 0, 30, 100][dice.below(4)]
    var next = 1
    while lines.count < count {
      let index = dice.below(layout.contexts)
      guard let step = Self.step(dice, layout, world.contexts[index], &next) else { continue }
      let line = ProgramLine(index, step)
      guard world.perform(line) != .skipped else { continue }
      lines.append(line)
      if dice.below(100) < looks { lines.append(ProgramLine(index, .look)) }
    }
    self.layout = layout
    self.lines = lines
  }

  private static func step(
    _ dice: Dice,
    _ layout: ProgramLayout,
    _ context: ReferenceContext,
    _ next: inout Int
  ) -> ProgramStep? {
    let live = context.live
    if layout.kind == .undoing, dice.below(5) == 0 { return dice.below(3) == 0 ? .redo : .undo }
    if layout.hasBatches, dice.below(20) == 0 { return batch(dice, &next) }
    if layout.hasLateMerges, dice.below(25) == 0 { return .mergeAgain }
    if layout.hasFailures, dice.below(15) == 0 { return .failingSave }
    if layout.kind == .conflicting, dice.below(8) == 0 { return .refreshAll }
    switch dice.below(100) {
    case 0..<18:
      next += 1
      // Most relationships refer to persons.
      return .insert(next - 1, dice.below(3) == 0 ? "Person" : dice.pick(GraphSchema.kinds) ?? "")
    case 18..<26:
      let name = layout.isUnique ? "u\(dice.below(3))" : "n\(next)"
      return dice.pick(live).map { .name($0, dice.below(5) == 0 ? nil : name) }
    case 26..<34:
      return dice.pick(live).map { .rank($0, dice.below(5) == 0 ? nil : dice.below(11)) }
    case 34..<68: return dice.pick(live).flatMap { relate($0, dice, context) }
    case 68..<76: return dice.pick(live).map { .delete($0) }
    case 76..<87: return .save
    case 87..<89: return .rollback
    case 89..<91: return dice.pick(live).map { .refresh($0, merging: dice.below(2) == 0) }
    case 91..<92: return .refreshAll
    case 92..<93: return .reset
    case 93..<95: return .release
    case 95..<97: return dice.pick(GraphSchema.kinds).map { .fetch($0) }
    default: return .process
    }
  }

  private static func batch(_ dice: Dice, _ next: inout Int) -> ProgramStep? {
    switch dice.below(3) {
    case 0:
      next += 1
      return dice.pick(GraphSchema.kinds).map { .batchInsert(next - 1, $0) }
    case 1: return dice.pick(GraphSchema.kinds).map { .batchRank($0, dice.below(11)) }
    default: return dice.pick(GraphSchema.batchKinds).map { .batchDelete($0) }
    }
  }

  private static func relate(
    _ object: Int,
    _ dice: Dice,
    _ context: ReferenceContext
  ) -> ProgramStep? {
    guard let relationship = dice.pick(context.relationships(object)) else { return nil }
    let side = relationship.description
    let others = context.live(of: relationship.inverse.description.entity)
    let members = context.working.destinations(object, relationship)
    guard side.isToMany else {
      return .toOne(object, side.name, dice.below(6) == 0 ? nil : dice.pick(others))
    }
    switch dice.below(side.isOrdered ? 7 : 5) {
    case 0: return dice.pick(members).map { .remove(object, side.name, $0) }
    case 1: return .replace(object, side.name, others.filter { _ in dice.below(2) == 0 })
    case 5, 6: return .replace(object, side.name, dice.shuffled(members))
    default: return dice.pick(others).map { .add(object, side.name, $0) }
    }
  }
}

/// Random choices that a seed reproduces.
struct Dice {
  private let source: SeededRandomness

  init(seed: UInt64) { source = SeededRandomness(seed: seed) }

  func below(_ bound: Int) -> Int { Int(source.next() % UInt64(bound)) }

  func pick<Element>(_ list: [Element]) -> Element? {
    list.isEmpty ? nil : list[below(list.count)]
  }

  func shuffled<Element>(_ list: [Element]) -> [Element] {
    var list = list
    for place in list.indices.dropFirst() { list.swapAt(place, below(place + 1)) }
    return list
  }
}
