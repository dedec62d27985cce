import Foundation

/// Records are archived whole by secure coding; their values go in as one property list, so that
/// an archive needs no list of allowed collection classes.
extension RecordValue: Codable {
  private enum Kind: String, CodingKey {
    case string, int64, double, data, date, location, reference, asset, list
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Kind.self)
    guard let kind = container.allKeys.first else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "A field value without a kind.")
      )
    }
    switch kind {
    case .string: self = .string(try container.decode(String.self, forKey: kind))
    case .int64: self = .int64(try container.decode(Int64.self, forKey: kind))
    case .double: self = .double(try container.decode(Double.self, forKey: kind))
    case .data: self = .data(try container.decode(Data.self, forKey: kind))
    case .date:
      let interval = try container.decode(Double.self, forKey: kind)
      self = .date(Date(timeIntervalSinceReferenceDate: interval))
    case .location:
      self = .location(try container.decode(CLLocation.Fields.self, forKey: kind).location)
    case .reference:
      self = .reference(try container.decode(ArchivedReference.self, forKey: kind).reference)
    case .asset: self = .asset(try container.decode(CKAsset.Archive.self, forKey: kind).asset)
    case .list: self = .list(try container.decode([RecordValue].self, forKey: kind))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Kind.self)
    switch self {
    case .string(let text): try container.encode(text, forKey: .string)
    case .int64(let number): try container.encode(number, forKey: .int64)
    case .double(let number): try container.encode(number, forKey: .double)
    case .data(let data): try container.encode(data, forKey: .data)
    case .date(let date):
      try container.encode(date.timeIntervalSinceReferenceDate, forKey: .date)
    case .location(let location): try container.encode(location.fields, forKey: .location)
    case .reference(let reference):
      try container.encode(ArchivedReference(reference), forKey: .reference)
    case .asset(let asset): try container.encode(CKAsset.Archive(asset), forKey: .asset)
    case .list(let elements): try container.encode(elements, forKey: .list)
    }
  }
}

/// A reference as it stands in an archive.
struct ArchivedReference: Codable {
  var recordName: String
  var zoneName: String
  var ownerName: String
  var action: UInt

  init(_ reference: CKRecord.Reference) {
    recordName = reference.recordID.recordName
    zoneName = reference.recordID.zoneID.zoneName
    ownerName = reference.recordID.zoneID.ownerName
    action = reference.action.rawValue
  }

  var reference: CKRecord.Reference {
    let zoneID = CKRecordZone.ID(zoneName: zoneName, ownerName: ownerName)
    return CKRecord.Reference(
      recordID: CKRecord.ID(recordName: recordName, zoneID: zoneID),
      action: CKRecord.ReferenceAction(rawValue: action) ?? .none
    )
  }
}
