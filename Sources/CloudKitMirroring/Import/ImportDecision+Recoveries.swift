extension ImportDecision {
  /// The entries that an import adds to the recovery list, in this order.
  static func recoveries(
    _ incoming: IncomingRecord,
    _ local: LocalObject,
    _ merge: PropertyMerge,
    _ losses: Losses
  ) -> [ImportRecovery] {
    var all: [ImportRecovery] = []
    if incoming.known.stamps.isOfLostCopy {
      // Other devices may have sent the lost values and edited them since.
      all.append(.init(.server, merge.stillPending, .lostValueSentAgain))
    }
    if !losses.lost.isEmpty {
      all.append(.init(.server, merge.stillPending, .restoredServerDiffers))
    } else if let base = incoming.base {
      if base.values.isEmpty {
        // An object that was restored here, without agreed values.
        all.append(.init(.server, merge.conflicting, .restoredOnOtherDevice))
      } else {
        all += recoveriesOfAgreed(incoming, local, merge, losses, since: base)
      }
    } else {
      all.append(.init(.server, merge.stillPending, .sentByOtherCopy))
    }
    return all.filter { !$0.properties.isEmpty }
  }

  /// The entries for a record whose values both sides had agreed on, or this store's opening trusted.
  private static func recoveriesOfAgreed(
    _ incoming: IncomingRecord,
    _ local: LocalObject,
    _ merge: PropertyMerge,
    _ losses: Losses,
    since base: FieldBag
  ) -> [ImportRecovery] {
    var all: [ImportRecovery] = []
    if incoming.repeated == nil, local.isFromEarlierOpening {
      // The store may be a backup that was restored, and the other edit later than this one.
      all.append(.init(.server, merge.conflicting, .editedBeforeOpening))
    }
    if incoming.known.hasDoubtfulUpdate {
      all.append(.init(.server, merge.conflicting, .editedWhileReplyWasLost))
    }
    if incoming.known.isNeverSent {
      // Another device may have set it back.
      let followed = merge.stillPending.intersection(losses.followed)
      all.append(.init(.server, followed, .editedInEarlierLaunch))
      let edited = merge.fromServer.filter {
        !base.agrees(with: incoming.record.fields, on: $0)
      }
      all.append(.init(.device, edited, .editedSinceOtherCopySent))
    }
    if let repeated = incoming.repeated {
      all.append(.init(.server, merge.conflicting, .editedWhileReplyWasLost))
      let taken = merge.fromServer.intersection(repeated.taken)
      all.append(.init(.device, taken, .replacedWhileReplyWasLost))
    }
    if let copy = incoming.known.base {
      // A former version's edit was taken, and set back before it was sent under the present name.
      let setBack = merge.fromServer.intersection(incoming.known.unconfirmed).filter {
        incoming.entity.hasTwoValues(of: $0, in: copy) && copy.agrees(with: local.fields, on: $0)
      }
      all.append(.init(.device, setBack, .setBackBeforeSending))
    }
    let unread = merge.fromServer.intersection(incoming.unreadFiles)
    all.append(.init(.device, unread, .replacedByUnreadFile))
    if incoming.isForgotten || incoming.isOtherServer {
      // A device that had missed edits may have created the zone again first, with older values.
      let agreed = incoming.agreedProperties(local.fields, since: base)
      all.append(.init(.device, agreed.subtracting(losses.omitted), .replacedAfterLoss))
    }
    return all
  }
}
