import Testing

/// Programs that once failed, after shrinking.
@Suite("Random programs that once failed")
struct FoundProgramTests {
  @Test("An object that was inserted and read gets the members that another context saves")
  func lookedAtBeforeFirstSave() throws {
    try expectAgreement(
      .merging,
      [
        .init(0, .insert(1, "Debt")),
        .init(1, .insert(6, "Person")),
        .init(1, .look),
        .init(1, .save),
        .init(0, .add(6, "debts", 1)),
        .init(0, .save),
      ]
    )
  }

  @Test("An object whose to-one was changed is no member of another context's owner")
  func memberThatLeft() throws {
    try expectAgreement(
      .merging,
      [
        .init(0, .insert(1, "Debt")),
        .init(0, .insert(2, "Person")),
        .init(0, .insert(3, "Person")),
        .init(0, .save),
        .init(1, .toOne(1, "debtor", 2)),
        .init(0, .add(3, "debts", 1)),
        .init(0, .save),
      ]
    )
  }

  @Test("An object that a child inserts after a first save has its values in the parent")
  func secondInsertionOfChild() throws {
    try expectAgreement(
      .child,
      [
        .init(1, .insert(3, "Stamp")),
        .init(1, .save),
        .init(1, .insert(4, "Ticket")),
        .init(1, .toOne(3, "card", nil)),
        .init(1, .name(4, "n5")),
        .init(1, .save),
      ]
    )
    try expectAgreement(
      .child,
      [
        .init(0, .insert(2, "Stamp")),
        .init(1, .insert(3, "Person")),
        .init(1, .look),
        .init(1, .save),
        .init(0, .name(3, "n5")),
      ]
    )
  }

  @Test("A child's member stays one when its owner gets its permanent identifier")
  func ownerWithLastingIdentifier() throws {
    try expectAgreement(
      .child,
      [
        .init(1, .insert(3, "Person")),
        .init(1, .save),
        .init(0, .toOne(3, "boss", 3)),
        .init(1, .toOne(3, "boss", 3)),
        .init(0, .save),
      ]
    )
  }

  @Test("A rollback restores a member to the owner that another context set")
  func memberThatLeftAndCameBack() throws {
    try expectAgreement(
      .merging,
      [
        .init(0, .insert(1, "Debt")),
        .init(0, .insert(2, "Person")),
        .init(0, .insert(3, "Person")),
        .init(0, .save),
        .init(1, .toOne(1, "debtor", 2)),
        .init(0, .add(3, "debts", 1)),
        .init(0, .save),
        .init(1, .look),
        .init(1, .rollback),
      ]
    )
  }

  @Test("Another coordinator's changes are merged from the history, in quick succession")
  func historyOfAnotherCoordinator() throws {
    try expectAgreement(
      .coordinators,
      [
        .init(1, .insert(1, "Ticket")),
        .init(1, .save),
        .init(1, .name(1, "n2")),
        .init(1, .save),
      ]
    )
  }

  @Test("Setting a value to what it was does not overwrite another context's save")
  func valueSetToWhatItWas() throws {
    for layout in [ProgramLayout.objectTrump, .storeTrump, .merging] {
      try expectAgreement(
        layout,
        [
          .init(0, .insert(1, "Ticket")),
          .init(0, .save),
          .init(1, .refreshAll),
          .init(0, .rank(1, 5)),
          .init(1, .rank(1, nil)),
          .init(1, .name(1, "n1")),
          .init(0, .save),
          .init(1, .save),
        ]
      )
    }
  }

  @Test("An object that was inserted and deleted prevents no other deletion")
  func neverSaved() throws {
    try expectAgreement(
      .single,
      [
        .init(0, .insert(1, "Person")),
        .init(0, .batchInsert(2, "Locker")),
        .init(0, .toOne(2, "user", 1)),
        .init(0, .delete(1)),
        .init(0, .save),
      ]
    )
    try expectAgreement(
      .single,
      [
        .init(0, .insert(3, "Person")),
        .init(0, .save),
        .init(0, .insert(5, "Debt")),
        .init(0, .toOne(5, "debtor", 3)),
        .init(0, .delete(3)),
        .init(0, .delete(5)),
        .init(0, .save),
      ]
    )
  }

  @Test("A child's changed object keeps its destination when that gets its permanent identifier")
  func destinationWithLastingIdentifier() throws {
    try expectAgreement(
      .child,
      [
        .init(1, .insert(3, "Person")),
        .init(1, .save),
        .init(0, .insert(5, "Person")),
        .init(0, .toOne(3, "boss", 5)),
        .init(1, .name(3, "n6")),
        .init(0, .save),
      ]
    )
  }

  @Test("A deleted member stays gone after a merge of the save that stored it")
  func deletedMemberThatWasStored() throws {
    for layout in [ProgramLayout.coordinators, .merging] {
      for (kind, key) in [("Dog", "owner"), ("Ticket", "line"), ("Debt", "debtor")] {
        try expectAgreement(
          layout,
          [
            .init(0, .insert(1, kind)),
            .init(0, .insert(2, "Person")),
            .init(0, .save),
            .init(1, .toOne(1, key, 2)),
            .init(0, .toOne(1, key, 2)),
            .init(0, .save),
            .init(1, .delete(1)),
          ]
        )
      }
    }
  }

  @Test("A member that was removed here and elsewhere can be added again")
  func removedMemberThatWasAddedAgain() throws {
    for layout in [ProgramLayout.coordinators, .merging] {
      for (kind, key) in [("Dog", "owner"), ("Ticket", "line")] {
        let program: [ProgramLine] = [
          .init(0, .insert(1, kind)),
          .init(0, .insert(2, "Person")),
          .init(0, .toOne(1, key, 2)),
          .init(0, .save),
          .init(1, .toOne(1, key, nil)),
          .init(0, .toOne(1, key, nil)),
          .init(0, .save),
          .init(1, .toOne(1, key, 2)),
        ]
        try expectAgreement(layout, program)
        try expectAgreement(layout, program + [.init(1, .save)])
        var looking = program
        looking.insert(.init(1, .look), at: 7)
        try expectAgreement(layout, looking + [.init(1, .name(2, "n")), .init(1, .save)])
      }
    }
  }

  @Test(
    "A link that two contexts set is removed by the context that removes it, and can be set again"
  )
  func linkThatTwoContextsMade() throws {
    for layout in [ProgramLayout.coordinators, .merging] {
      for (owner, key, member) in [(2, "clubs", 1), (1, "members", 2)] {
        let start: [ProgramLine] = [
          .init(0, .insert(1, "Club")),
          .init(0, .name(1, "n1")),
          .init(0, .insert(2, "Person")),
        ]
        let make = ProgramStep.add(owner, key, member)
        let cut = ProgramStep.remove(owner, key, member)
        let save = ProgramStep.save
        for looks in [[], [ProgramLine(1, .look)]] {
          try expectAgreement(
            layout,
            start + [
              .init(0, save), .init(1, make), .init(0, make), .init(0, save),
            ] + looks + [.init(1, cut), .init(1, save)]
          )
          try expectAgreement(
            layout,
            start + [
              .init(0, make), .init(0, save), .init(1, cut), .init(0, cut), .init(0, save),
            ] + looks + [.init(1, make), .init(1, save)]
          )
        }
      }
    }
  }

  @Test("An undone insertion leaves nothing that another object's undo would restore")
  func undoneInsertion() throws {
    try expectAgreement(
      .undoing,
      [
        .init(0, .insert(5, "Person")),
        .init(0, .save),
        .init(0, .rank(5, 5)),
        .init(0, .save),
        .init(0, .insert(7, "Stamp")),
        .init(0, .undo),
        .init(0, .save),
        .init(0, .refresh(5, merging: false)),
        .init(0, .release),
        .init(0, .rank(5, nil)),
        .init(0, .undo),
      ]
    )
  }

  @Test("A to-one that was set to what it was takes what the context saved that deleted its object")
  func destinationThatWasDeleted() throws {
    for layout in [ProgramLayout.merging, .coordinators] {
      for (kind, key) in [("Ticket", "line"), ("Dog", "owner")] {
        try expectAgreement(
          layout,
          [
            .init(1, .insert(1, "Person")),
            .init(1, .insert(3, kind)),
            .init(1, .toOne(3, key, 1)),
            .init(1, .save),
            .init(1, .toOne(3, key, 1)),
            .init(0, .insert(8, "Person")),
            .init(0, .delete(1)),
            .init(0, .toOne(3, key, 8)),
            .init(0, .save),
          ]
        )
      }
    }
  }

  @Test("A step undoes its own change of a fault's members, and not those of steps before it")
  func faultWithChangedMembers() throws {
    try expectAgreement(
      .undoing,
      [
        .init(0, .insert(2, "Person")),
        .init(0, .insert(3, "Dog")),
        .init(0, .save),
        .init(0, .refreshAll),
        .init(0, .toOne(3, "owner", 2)),
        .init(0, .toOne(3, "owner", nil)),
        .init(0, .undo),
      ]
    )
    try expectAgreement(
      .undoing,
      [
        .init(0, .insert(1, "Debt")),
        .init(0, .insert(2, "Debt")),
        .init(0, .insert(3, "Person")),
        .init(0, .toOne(1, "debtor", 3)),
        .init(0, .save),
        .init(0, .reset),
        .init(0, .toOne(2, "debtor", 3)),
        .init(0, .delete(1)),
        .init(0, .undo),
      ]
    )
  }
}
