import Foundation

/// The body of `assets/upload`.
package struct UploadTokensRequest: Codable, Hashable, Sendable {
  package var tokens: [UploadTokenField]
  package var zoneID: ZoneID?

  package init(
    tokens: [UploadTokenField],
    zoneID: ZoneID? = nil
  ) {
    self.tokens = tokens
    self.zoneID = zoneID
  }
}

/// A field whose file is to be uploaded.
package struct UploadTokenField: Codable, Hashable, Sendable {
  package var fieldName: String
  /// Absent: the server generates one.
  package var recordName: String?
  package var recordType: String?

  package init(
    fieldName: String,
    recordName: String? = nil,
    recordType: String? = nil
  ) {
    self.fieldName = fieldName
    self.recordName = recordName
    self.recordType = recordType
  }
}

/// The upload URL of one file.
package struct UploadToken: Codable, Hashable, Sendable {
  package var recordName: String
  package var fieldName: String
  /// The URL that grants the upload; it expires soon.
  package var url: String

  package init(
    recordName: String,
    fieldName: String,
    url: String
  ) {
    self.recordName = recordName
    self.fieldName = fieldName
    self.url = url
  }
}

/// The reply of `assets/upload`, in the order of the request.
package struct UploadTokensResponse: Codable, Hashable, Sendable {
  package var tokens: [ItemResult<UploadToken>]

  package init(
    tokens: [ItemResult<UploadToken>]
  ) {
    self.tokens = tokens
  }
}

/// The reply to an upload: the value to save in the record's field.
package struct UploadedFileResponse: Codable, Hashable, Sendable {
  package var singleFile: AssetValue

  package init(
    singleFile: AssetValue
  ) {
    self.singleFile = singleFile
  }
}
