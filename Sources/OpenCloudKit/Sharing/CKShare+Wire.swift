import CloudKitWebServices
import Foundation

extension WireMapping {
  /// The share of a reply.
  func share(
    _ wire: RecordDictionary,
    recordID: CKRecord.ID,
    fields: [String: CKRecord.Field]
  ) -> CKShare {
    CKShare(
      recordID: recordID,
      system: systemFields(wire, in: recordID.zoneID),
      fields: fields,
      sharing: sharing(wire)
    )
  }

  /// The members of a reply that only shares have.
  func sharing(_ wire: RecordDictionary) -> CKShare.Sharing {
    let dictionary = wire.sharing
    var participants = (dictionary?.participants ?? []).map(CKShare.Participant.init(wire:))
    if let owner = dictionary?.owner.map(CKShare.Participant.init(wire:)),
      !participants.contains(where: { $0.isSamePerson(owner) })
    {
      participants.insert(owner, at: 0)
    }
    // The owner first, then the others in the service's order.
    participants =
      participants.filter { $0.role == .owner }
      + participants.filter {
        $0.role != .owner
      }
    var sharing = CKShare.Sharing(participants: participants)
    sharing.publicPermission = CKShare.ParticipantPermission(
      dictionary?.publicPermission ?? ParticipantPermission.none
    )
    sharing.currentUserID = dictionary?.currentUserParticipant.map {
      CKShare.Participant(wire: $0).participantID
    }
    sharing.url = shareURL(wire)
    sharing.allowsAccessRequests = dictionary?.denyAccessRequests == false
    sharing.requesters = (dictionary?.requesters ?? []).compactMap(
      CKShare.AccessRequester.init(wire:)
    )
    sharing.blockedIdentities = (dictionary?.blocked ?? []).map {
      CKShare.BlockedIdentity(
        userIdentity: CKUserIdentity(wire: $0.userIdentity ?? UserIdentity())
      )
    }
    sharing.isChanged = false
    return sharing
  }

  private func shareURL(_ wire: RecordDictionary) -> URL? {
    guard let guid = wire.shortGUID, !guid.isEmpty, let origin = shareOrigin else { return nil }
    return origin.appendingPathComponent("share").appendingPathComponent(guid)
  }
}

extension CKShare {
  /// The members of a save that only shares have.
  var wireSharing: ShareDictionary {
    let sharing = sharingState
    return ShareDictionary(
      forRecord: recordChangeTag == nil
        ? sharing.rootRecordID.map { SharedRootDictionary(recordName: $0.recordName) } : nil,
      publicPermission: sharing.publicPermission.wire,
      // The current user is left out: the service adds the user who saves the share as its owner.
      participants: sharing.participants.filter { !$0.isCurrentUser }.map(\.wire),
      requesters: sharing.answersRequests
        ? sharing.requesters.map { ShareParticipant(userIdentity: $0.userIdentity.wire) } : nil,
      blocked: sharing.answersRequests
        ? sharing.blockedIdentities.map { ShareParticipant(userIdentity: $0.userIdentity.wire) }
        : nil,
      denyAccessRequests: sharing.opensRequests ? !sharing.allowsAccessRequests : nil
    )
  }

  /// The short identifier at the end of a link.
  static func shortGUID(of url: URL) -> String? {
    let name = url.lastPathComponent
    guard !name.isEmpty, name != "/", url.pathComponents.contains("share") else { return nil }
    return name
  }
}
