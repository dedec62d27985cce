import CloudKitWebServices
import Foundation

extension WireMapping {
  /// The wire's form of a field; an absent field is null, which removes it.
  ///
  /// `uploads` are the files uploaded before the record, by the identity of their assets.
  package func wire(
    _ field: CKRecord.Field?,
    key: String,
    of recordID: CKRecord.ID,
    uploads: [ObjectIdentifier: CKAsset.StoredFile] = [:]
  ) throws(CKError) -> FieldValue {
    guard let field else { return FieldValue(.null) }
    return FieldValue(
      try content(field.value, key: key, of: recordID, uploads: uploads),
      isEncrypted: field.isEncrypted
    )
  }

  private func content(
    _ value: RecordValue,
    key: String,
    of recordID: CKRecord.ID,
    uploads: [ObjectIdentifier: CKAsset.StoredFile]
  ) throws(CKError) -> FieldContent {
    switch value {
    case .string(let text): return .string(text)
    case .int64(let number): return .int64(number)
    case .double(let number):
      try checkFinite(number, key: key, of: recordID)
      return .double(number)
    case .date(let date): return .timestamp(TimestampValue(date))
    case .data(let data): return .bytes(data)
    case .location(let location): return .location(try wire(location, key: key, of: recordID))
    case .reference(let reference): return .reference(wire(reference))
    case .asset(let asset): return .asset(try wire(asset, key: key, of: recordID, uploads: uploads))
    case .list(let elements): return try list(elements, key: key, of: recordID, uploads: uploads)
    }
  }

  private func list(
    _ elements: [RecordValue],
    key: String,
    of recordID: CKRecord.ID,
    uploads: [ObjectIdentifier: CKAsset.StoredFile]
  ) throws(CKError) -> FieldContent {
    guard !elements.isEmpty else { return .unknownList }
    var contents: [FieldContent] = []
    for element in elements {
      contents.append(try content(element, key: key, of: recordID, uploads: uploads))
    }
    let kinds = Set(contents.compactMap(\.type))
    if kinds == [.int64, .double] {
      return .doubleList(
        contents.compactMap { content in
          switch content {
          case .int64(let number): Double(number)
          case .double(let number): number
          default: nil
          }
        }
      )
    }
    guard kinds.count == 1, let list = FieldContent(elements: contents) else {
      throw CKError(
        .invalidArguments,
        "The list \(key) of record \(recordID.recordName) mixes types.",
        remedy: "Store values of one type in a list."
      )
    }
    return list
  }

  /// Refuses a number that JSON has no form for: it would fail the whole request.
  private func checkFinite(
    _ number: Double,
    key: String,
    of recordID: CKRecord.ID
  ) throws(CKError) {
    guard number.isFinite else {
      throw CKError(
        .invalidArguments,
        "The value \(number) of \(key) in record \(recordID.recordName) can't be sent.",
        remedy: "Store a finite number."
      )
    }
  }

  private func wire(
    _ location: CLLocation,
    key: String,
    of recordID: CKRecord.ID
  ) throws(CKError) -> LocationValue {
    let fields = location.fields
    let numbers = [
      fields.latitude, fields.longitude, fields.horizontalAccuracy, fields.verticalAccuracy,
      fields.altitude, fields.speed, fields.course,
    ]
    for number in numbers { try checkFinite(number, key: key, of: recordID) }
    return LocationValue(
      latitude: fields.latitude,
      longitude: fields.longitude,
      horizontalAccuracy: fields.horizontalAccuracy,
      verticalAccuracy: fields.verticalAccuracy,
      altitude: fields.altitude,
      speed: fields.speed,
      course: fields.course,
      timestamp: fields.timestamp.wireMilliseconds
    )
  }

  private func wire(_ reference: CKRecord.Reference) -> ReferenceValue {
    ReferenceValue(
      recordName: reference.recordID.recordName,
      zoneID: wire(reference.recordID.zoneID),
      action: reference.action == .deleteSelf ? .deleteSelf : ReferenceAction.none
    )
  }

  private func wire(
    _ asset: CKAsset,
    key: String,
    of recordID: CKRecord.ID,
    uploads: [ObjectIdentifier: CKAsset.StoredFile]
  ) throws(CKError) -> AssetValue {
    guard let file = uploads[ObjectIdentifier(asset)] ?? asset.storedFile else {
      throw CKError(
        .assetFileNotFound,
        "The asset \(key) of record \(recordID.recordName) was not uploaded."
      )
    }
    return AssetValue(
      fileChecksum: file.fileChecksum,
      size: file.size,
      receipt: file.receipt,
      wrappingKey: file.wrappingKey,
      referenceChecksum: file.referenceChecksum,
      downloadURL: file.receipt == nil ? file.downloadURL : nil
    )
  }
}

extension FieldContent {
  /// A list of elements that are all of one type.
  fileprivate init?(elements: [FieldContent]) {
    func all<Value>(_ value: (FieldContent) -> Value?) -> [Value] { elements.compactMap(value) }
    switch elements.first {
    case .string: self = .stringList(all { if case .string(let value) = $0 { value } else { nil } })
    case .int64: self = .int64List(all { if case .int64(let value) = $0 { value } else { nil } })
    case .double:
      self = .doubleList(all { if case .double(let value) = $0 { value } else { nil } })
    case .timestamp:
      self = .timestampList(all { if case .timestamp(let value) = $0 { value } else { nil } })
    case .bytes: self = .bytesList(all { if case .bytes(let value) = $0 { value } else { nil } })
    case .location: self = .locationList(all(\.location))
    case .reference: self = .referenceList(elements.flatMap(\.references))
    case .asset: self = .assetList(elements.flatMap(\.assets))
    default: return nil
    }
  }
}
