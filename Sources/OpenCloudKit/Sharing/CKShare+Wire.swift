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
    sharing.base = sharing.content
    return sharing
  }

  private func shareURL(_ wire: RecordDictionary) -> URL? {
    guard let guid = wire.shortGUID, !guid.isEmpty, let origin = shareOrigin else { return nil }
    return origin.appendingPathComponent("share").appendingPathComponent(guid)
  }
}

extension CKShare.Sharing {
  /// The participants that a save sends.
  ///
  /// The current user is left out: the service adds the user who saves the share as its owner.
  fileprivate var savedParticipants: [CKShare.Participant] {
    participants.filter { !$0.isCurrentUser }
  }

  /// What an app can edit of the permissions and participants.
  var content: SharingBase {
    SharingBase(
      publicPermission: publicPermission.wire,
      participants: savedParticipants.map(\.editable)
    )
  }

  /// Applies the edits that were made to the share after its content was sent.
  mutating func apply(_ edited: CKShare.Sharing, since sent: SharingBase) {
    if edited.publicPermission.wire != sent.publicPermission {
      publicPermission = edited.publicPermission
    }
    for participant in edited.savedParticipants
    where !sent.participants.contains(participant.editable) {
      guard let index = participants.firstIndex(where: { $0.isSamePerson(participant) }) else {
        participants.append(participant)
        continue
      }
      guard participants[index].role != .owner else { continue }
      participants[index].permission = participant.permission
      participants[index].role = participant.role
    }
    let kept = Set(edited.participants.map(\.participantID))
    let removed = Set(sent.participants.compactMap(\.participantId)).subtracting(kept)
    participants.removeAll { $0.role != .owner && removed.contains($0.participantID) }
  }
}

extension CKShare.Participant {
  /// What an app can edit of a participant.
  fileprivate var editable: ShareParticipant {
    let wire = self.wire
    return ShareParticipant(
      participantId: wire.participantId,
      type: wire.type,
      permission: wire.permission
    )
  }
}

extension CKShare {
  /// The members of a save that only shares have.
  ///
  /// Permissions and participants are sent if they were edited, and the ones that were fetched with
  /// them: without these the service would take the list of an older copy for the whole truth.
  func wireSharing() -> ShareDictionary {
    let sharing = sharingState
    let isNew = recordChangeTag == nil
    let isSent = isNew || sharing.content != sharing.base
    return ShareDictionary(
      forRecord: isNew
        ? sharing.rootRecordID.map { SharedRootDictionary(recordName: $0.recordName) } : nil,
      publicPermission: isSent ? sharing.publicPermission.wire : nil,
      participants: isSent ? sharing.savedParticipants.map(\.wire) : nil,
      requesters: sharing.answersRequests
        ? sharing.requesters.map { ShareParticipant(userIdentity: $0.userIdentity.wire) } : nil,
      blocked: sharing.answersRequests
        ? sharing.blockedIdentities.map { ShareParticipant(userIdentity: $0.userIdentity.wire) }
        : nil,
      sharingBase: isSent && !isNew ? sharing.base : nil,
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
