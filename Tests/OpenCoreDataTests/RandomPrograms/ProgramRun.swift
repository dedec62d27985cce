/// Runs a program on Core Data and on the reference, and compares both.
enum ProgramRun {
  /// The first difference between the two; nil if there is none.
  static func difference(_ layout: ProgramLayout, _ lines: [ProgramLine]) throws -> String? {
    var reference = ReferenceWorld(layout)
    let real = try RealWorld(layout)
    for (place, line) in lines.enumerated() {
      let expected = reference.perform(line)
      guard expected != .skipped else { continue }
      let found = try real.perform(line, reference)
      if !agree(found, expected, layout) {
        return "step \(place), \(line): \(found), expected \(expected)"
      }
      let context = reference.contexts[line.context]
      let difference =
        switch line.step {
        case .look: real.difference(context, line.context)
        case .fetch(let kind): try real.differenceOfFetch(kind, context, line.context)
        default: nil as String?
        }
      if let difference { return "step \(place), \(line): \(difference)" }
      if line.step.mayWrite, let broken = try real.brokenInvariant(after: line.context) {
        return "step \(place), \(line): \(broken)"
      }
    }
    for index in reference.contexts.indices {
      let line = ProgramLine(index, .look)
      _ = reference.perform(line)
      _ = try real.perform(line, reference)
      if let difference = real.difference(reference.contexts[index], index) {
        return "at the end, context \(index): \(difference)"
      }
    }
    let difference = try real.differenceOfStore(reference.store) ?? real.brokenInvariant(after: nil)
    return difference.map { "at the end: \($0)" }
  }

  private static func agree(
    _ found: ReferenceWorld.Outcome,
    _ expected: ReferenceWorld.Outcome,
    _ layout: ProgramLayout
  ) -> Bool {
    guard layout.kind == .undoing else { return found == expected }
    // It is not documented whether an object stays updated when its changes are undone.
    switch (found, expected) {
    case (.saved(let found), .saved(let expected)):
      return found.inserted == expected.inserted && found.deleted == expected.deleted
        && found.updated.isSuperset(of: expected.updated)
    case (.saved(let found), .done): return found.inserted.isEmpty && found.deleted.isEmpty
    default: return found == expected
    }
  }

  /// A failing program after shrinking, as lines of a test.
  static func report(_ program: RandomProgram) throws -> String? {
    guard try difference(program.layout, program.lines) != nil else { return nil }
    let lines = try ProgramShrinker.shrink(program.lines) { lines in
      try difference(program.layout, lines) != nil
    }
    let reason = try difference(program.layout, lines) ?? ""
    let source = lines.map { "      \($0),\n" }.joined()
    return
      "\(reason)\n    try expectAgreement(\n      \(program.layout),\n      [\n\(source)      ]\n    )"
  }
}
