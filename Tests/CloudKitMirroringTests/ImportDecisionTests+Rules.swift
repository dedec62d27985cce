import CloudKitMirroring

extension ImportDecisionTests {
  static var rules: [ImportRule] { merges + losses + copies + replies }

  private static let merges: [ImportRule] = [
    ImportRule(
      "A value that only the server changed is taken",
      .agreed,
      base: ["title": "a"],
      server: ["title": "s"],
      local: ["title": "a"]
    ) { $0.fromServer = ["title"] },
    ImportRule(
      "A value that only this device changed is sent",
      .edited(["title"]),
      base: ["title": "a", "content": "a"],
      server: ["title": "a", "content": "s"],
      local: ["title": "l", "content": "a"]
    ) {
      $0.fromServer = ["content"]
      $0.stillPending = ["title"]
    },
    ImportRule(
      "This device's value is sent if both sides changed it",
      .edited(["title"]),
      base: ["title": "a"],
      server: ["title": "s"],
      local: ["title": "l"]
    ) {
      $0.stillPending = ["title"]
      $0.conflicting = ["title"]
    },
    ImportRule(
      "A value that both changed alike is not sent",
      .edited(["title"]),
      base: ["title": "a"],
      server: ["title": "x"],
      local: ["title": "x"]
    ),
    ImportRule(
      "A value that was set back to the agreed one is no edit",
      .edited(["title"]),
      base: ["title": "a"],
      server: ["title": "s"],
      local: ["title": "a"]
    ) { $0.fromServer = ["title"] },
    ImportRule(
      "A value whose file is missing here comes from the server",
      .agreed,
      base: ["content": "a"],
      server: ["content": "a"],
      local: [:]
    ) {
      $0.missingFiles = ["content"]
      $0.fromServer = ["content"]
    },
    ImportRule(
      "An edited value whose file is missing here waits for it",
      .edited(["content"]),
      base: ["content": "a"],
      server: ["content": "a"],
      local: [:]
    ) { $0.missingFiles = ["content"] },
    ImportRule(
      "Another device's edit of a value whose file is missing here is taken",
      .edited(["content"]),
      base: ["content": "a"],
      server: ["content": "s"],
      local: [:]
    ) {
      $0.missingFiles = ["content"]
      $0.fromServer = ["content"]
    },
    ImportRule(
      "A file under the present name that was never read is taken, and the agreed value is kept",
      .agreed,
      base: ["title": "a", "content": "a"],
      server: ["title": "s", "content": "s"],
      local: ["title": "a", "content": "a"]
    ) {
      $0.unreadFiles = ["content"]
      $0.fromServer = ["title", "content"]
      $0.recoveries = [ImportRecovery(.device, ["content"], .replacedByUnreadFile)]
    },
    ImportRule(
      "An edit of an object that was restored here wins, and the other restoration is kept",
      .forgotten(edited: ["title"]),
      base: [:],
      server: ["title": "s"],
      local: ["title": "l"]
    ) {
      $0.stillPending = ["title"]
      $0.conflicting = ["title"]
      $0.recoveries = [ImportRecovery(.server, ["title"], .restoredOnOtherDevice)]
    },
  ]

  private static let losses: [ImportRule] = [
    ImportRule(
      "A restored server's older value is replaced by the agreed one, and kept",
      .agreed,
      base: ["title": "a"],
      server: ["title": "old"],
      local: ["title": "a"]
    ) {
      $0.isOtherServer = true
      $0.stamps = RecordStamps(created: 1, modified: 2)
      $0.stillPending = ["title"]
      $0.resent = ["title"]
      $0.recoveries = [ImportRecovery(.server, ["title"], .restoredServerDiffers)]
      $0.isOfLostCopy = true
    },
    ImportRule(
      "A restored server's newer value is taken, and the agreed one is kept",
      .agreed,
      base: ["title": "a"],
      server: ["title": "new"],
      local: ["title": "a"]
    ) {
      $0.isOtherServer = true
      $0.fromServer = ["title"]
      $0.recoveries = [ImportRecovery(.device, ["title"], .replacedAfterLoss)]
    },
    ImportRule(
      "An older time alone means no loss",
      .agreed,
      base: ["title": "a"],
      server: ["title": "s"],
      local: ["title": "a"]
    ) {
      $0.stamps = RecordStamps(created: 1, modified: 2)
      $0.fromServer = ["title"]
    },
    ImportRule(
      "A value that was sent again in place of a lost one wins, and the other edit is kept",
      .lostCopy(edited: ["title"]),
      base: ["title": "a"],
      server: ["title": "s"],
      local: ["title": "l"]
    ) {
      $0.stillPending = ["title"]
      $0.conflicting = ["title"]
      $0.recoveries = [ImportRecovery(.server, ["title"], .lostValueSentAgain)]
      $0.isOfLostCopy = true
    },
    ImportRule(
      "A field that a remade record lacks is sent again; a value that it replaces is kept",
      .forgotten(edited: []),
      base: ["title": "a", "content": "a"],
      server: ["title": "s"],
      local: ["title": "a", "content": "a"]
    ) {
      $0.stamps = RecordStamps(created: 2, modified: 5)
      $0.fromServer = ["title"]
      $0.stillPending = ["content"]
      $0.resent = ["content"]
      $0.recoveries = [ImportRecovery(.device, ["title"], .replacedAfterLoss)]
    },
    ImportRule(
      "A field that a record lacks which was not made again was removed",
      .forgotten(edited: []),
      base: ["content": "a"],
      server: [:],
      local: ["content": "a"]
    ) {
      $0.fromServer = ["content"]
      $0.recoveries = [ImportRecovery(.device, ["content"], .replacedAfterLoss)]
    },
  ]

  private static let copies: [ImportRule] = [
    ImportRule(
      "An edit that was saved before the store was opened wins, and the other one is kept",
      .edited(["title"]),
      base: ["title": "a"],
      server: ["title": "s"],
      local: ["title": "l"]
    ) {
      $0.isFromEarlierOpening = true
      $0.stillPending = ["title"]
      $0.conflicting = ["title"]
      $0.recoveries = [ImportRecovery(.server, ["title"], .editedBeforeOpening)]
    },
    ImportRule(
      "A value that another copy of the store sent, and a device edited since, is taken",
      .neverSent(edited: ["title"]),
      base: ["title": "a"],
      server: ["title": "s"],
      local: ["title": "a"]
    ) {
      $0.fromServer = ["title"]
      $0.recoveries = [ImportRecovery(.device, ["title"], .editedSinceOtherCopySent)]
    },
    ImportRule(
      "An edit after an earlier launch wins over the value that the store had at that launch",
      .neverSent(edited: ["title"]),
      base: ["title": "second"],
      server: ["title": "first"],
      local: ["title": "third"]
    ) {
      $0.trusted = [["title": "zeroth"], ["title": "first"]]
      $0.stillPending = ["title"]
      $0.recoveries = [ImportRecovery(.server, ["title"], .editedInEarlierLaunch)]
    },
    ImportRule(
      "This store's value of a record of the same name wins, and the other value is kept",
      .neverSent(edited: ["title"]),
      base: nil,
      server: ["title": "s"],
      local: ["title": "l"]
    ) {
      $0.stillPending = ["title"]
      $0.recoveries = [ImportRecovery(.server, ["title"], .sentByOtherCopy)]
    },
  ]

  private static let replies: [ImportRule] = [
    ImportRule(
      "An update without a reply that meets another edit wins, and the other one is kept",
      .sent(["title"]),
      base: ["title": "a"],
      server: ["title": "s"],
      local: ["title": "l"]
    ) {
      $0.sent = ["title": "l"]
      $0.stillPending = ["title"]
      $0.conflicting = ["title"]
      $0.recoveries = [ImportRecovery(.server, ["title"], .editedWhileReplyWasLost)]
    },
    ImportRule(
      "An update without a reply that the server has taken replaces no later edit",
      .sent(["title", "content"]),
      base: ["title": "a", "content": "a"],
      server: ["title": "l", "content": "s"],
      local: ["title": "l", "content": "l"]
    ) {
      $0.sent = ["title": "l", "content": "l"]
      $0.fromServer = ["content"]
      $0.recoveries = [ImportRecovery(.device, ["content"], .replacedWhileReplyWasLost)]
    },
  ]
}
