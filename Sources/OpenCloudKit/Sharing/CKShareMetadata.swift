import CloudKitWebServices
import Foundation

extension CKShare {
  /// The share that a link identifies.
  public typealias Metadata = CKShareMetadata
}

// Not nested, for the archives' sake: see `CKRecordID`.

/// The share that a link identifies, as the user who opened the link sees it.
///
/// ```swift
/// let metadata = try await others.shareMetadata(for: url)
/// _ = try await others.accept(metadata)
///
/// let shared = others.sharedCloudDatabase
/// for zone in try await shared.allRecordZones() {
///   let folderID = CKRecord.ID(recordName: "holidays", zoneID: zone.zoneID)
///   let folder = try await shared.record(for: folderID)
///   print(folder["name"] as? String ?? "")
/// }
/// ```
public final class CKShareMetadata: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: immutable after the initializer.

  /// The container that the share is in.
  public let containerIdentifier: String
  /// The share.
  public let share: CKShare
  /// The root of the shared hierarchy; nil if a zone is shared.
  public let hierarchicalRootRecordID: CKRecord.ID?
  /// The root record, if it was requested.
  public let rootRecord: CKRecord?
  /// The owner of the shared records.
  public let ownerIdentity: CKUserIdentity
  /// The user's role in the share.
  public let participantRole: CKShare.ParticipantRole
  /// The status of the user's invitation.
  public let participantStatus: CKShare.ParticipantAcceptanceStatus
  /// The user's permission.
  public let participantPermission: CKShare.ParticipantPermission

  /// The short identifier in the link.
  package let shortGUID: String

  /// The root record; for a shared zone the share itself.
  @available(*, deprecated, renamed: "hierarchicalRootRecordID")
  public var rootRecordID: CKRecord.ID { hierarchicalRootRecordID ?? share.recordID }

  /// The user's role in the share, by an older name.
  @available(*, deprecated, renamed: "participantRole")
  public var participantType: CKShare.ParticipantType {
    CKShare.ParticipantType(rawValue: participantRole.rawValue) ?? .unknown
  }

  /// Reads the metadata of a reply.
  package init(wire: ShareMetadata, mapping: WireMapping) throws(CKError) {
    let zoneID = mapping.zoneID(wire.zoneID)
    guard let share = try mapping.record(wire.share, in: zoneID) as? CKShare else {
      throw CKError(.internalError, "The service sent a record that is not a share.")
    }
    self.share = share
    shortGUID = wire.shortGUID.value
    containerIdentifier = wire.containerIdentifier
    let isZoneShare = wire.rootRecordName == CKRecordNameZoneWideShare
    hierarchicalRootRecordID =
      isZoneShare || wire.rootRecordName.isEmpty
      ? nil : CKRecord.ID(recordName: wire.rootRecordName, zoneID: zoneID)
    if let root = wire.rootRecord {
      rootRecord = try mapping.record(root, in: zoneID)
    } else {
      rootRecord = nil
    }
    ownerIdentity = CKUserIdentity(wire: wire.ownerIdentity)
    participantRole = CKShare.ParticipantRole(wire.participantType)
    participantStatus = CKShare.ParticipantAcceptanceStatus(wire.participantStatus)
    participantPermission = CKShare.ParticipantPermission(wire.participantPermission)
    super.init()
  }

  // MARK: Archives

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads metadata from an archive.
  public init?(coder: NSCoder) {
    guard let containerIdentifier = coder.decodeString(forKey: "ContainerIdentifier"),
      let share = coder.decodeIfPresent(of: CKShare.self, forKey: "Share"),
      let owner = coder.decodeIfPresent(of: CKUserIdentity.self, forKey: "OwnerIdentity"),
      let shortGUID = coder.decodeString(forKey: "ShortGUID")
    else { return nil }
    self.containerIdentifier = containerIdentifier
    self.share = share
    self.shortGUID = shortGUID
    ownerIdentity = owner
    hierarchicalRootRecordID = coder.decodeIfPresent(of: CKRecord.ID.self, forKey: "RootRecordID")
    rootRecord = coder.decodeIfPresent(of: CKRecord.self, forKey: "RootRecord")
    participantRole =
      CKShare.ParticipantRole(rawValue: coder.integer(forKey: "ParticipantRole")) ?? .unknown
    participantStatus =
      CKShare.ParticipantAcceptanceStatus(rawValue: coder.integer(forKey: "ParticipantStatus"))
      ?? .unknown
    participantPermission =
      CKShare.ParticipantPermission(rawValue: coder.integer(forKey: "ParticipantPermission"))
      ?? .unknown
    super.init()
  }

  /// Writes the metadata to an archive.
  public func encode(with coder: NSCoder) {
    coder.encode(containerIdentifier as NSString, forKey: "ContainerIdentifier")
    coder.encode(share, forKey: "Share")
    coder.encode(shortGUID as NSString, forKey: "ShortGUID")
    coder.encode(ownerIdentity, forKey: "OwnerIdentity")
    coder.encodeIfPresent(hierarchicalRootRecordID, forKey: "RootRecordID")
    coder.encodeIfPresent(rootRecord, forKey: "RootRecord")
    coder.encode(participantRole.rawValue, forKey: "ParticipantRole")
    coder.encode(participantStatus.rawValue, forKey: "ParticipantStatus")
    coder.encode(participantPermission.rawValue, forKey: "ParticipantPermission")
  }

  /// The metadata itself: it never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other object is the metadata of the same link.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CKShare.Metadata else { return false }
    return containerIdentifier == other.containerIdentifier && shortGUID == other.shortGUID
      && participantStatus == other.participantStatus
  }

  /// A hash of the link.
  public override var hash: Int { shortGUID.hashValue }

  /// The form CloudKit prints.
  public override var description: String {
    "<CKShareMetadata: \(RecordFormatter.address(of: self)); "
      + "containerIdentifier=\(containerIdentifier), shareID=\(share.recordID.recordName), "
      + "participantRole=\(participantRole), participantStatus=\(participantStatus), "
      + "participantPermission=\(participantPermission)>"
  }
}
