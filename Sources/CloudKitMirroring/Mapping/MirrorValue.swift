import Crypto
import Foundation

/// The value of one field of a mirrored record.
package enum MirrorValue: Hashable, Sendable {
  case string(String)
  case integer(Int64)
  case double(Double)
  case date(MirrorDate)
  case data(Data)
  /// A file beside the record.
  case asset(MirrorAsset)
  /// Only the fingerprint of a value: enough to compare it with another.
  case fingerprint(MirrorFingerprint)

  /// The approximate size of the value in a record's budget, in bytes.
  package var byteCount: Int {
    switch self {
    case .string(let text): text.utf8.count
    case .integer, .double, .date: 8
    case .data(let data): data.count
    case .asset: 0
    case .fingerprint(let fingerprint): Int(fingerprint.size)
    }
  }

  /// A digest of this value, for values that can be large.
  package var fingerprint: MirrorFingerprint? {
    switch self {
    case .string(let text): MirrorFingerprint(of: Data(text.utf8))
    case .data(let data): MirrorFingerprint(of: data)
    case .asset(let asset): asset.fingerprint
    case .fingerprint(let fingerprint): fingerprint
    case .integer, .double, .date: nil
    }
  }

  /// Whether both have the same content, inline, in a file or as a fingerprint.
  package func hasSameContent(as other: MirrorValue) -> Bool {
    switch (self, other) {
    case (.string(let left), .string(let right)):
      // The bytes are compared: canonically equivalent texts are different edits.
      left.utf8.elementsEqual(right.utf8)
    case (.data(let left), .data(let right)): left == right
    case (.integer(let left), .double(let right)), (.double(let right), .integer(let left)):
      // The values are compared as integers: above 2^53 several integers become one double.
      Int64(exactly: right) == left
    case (.asset, _), (.fingerprint, _), (_, .asset), (_, .fingerprint):
      fingerprint != nil && fingerprint == other.fingerprint
    default: self == other
    }
  }
}

/// A date, compared by the milliseconds that every client of the service keeps.
///
/// Another client, or an earlier version of the app, may return a date without its fraction of a millisecond: that is
/// no edit.
package struct MirrorDate: Hashable, Sendable {
  package var secondsSince2001: Double

  package init(secondsSince2001: Double) { self.secondsSince2001 = secondsSince2001 }

  package init(milliseconds: Int64) {
    secondsSince2001 = Double(milliseconds) / 1000 - Self.secondsTo1970
  }

  /// Milliseconds since 1970.
  package var milliseconds: Int64 {
    let value = ((secondsSince2001 + Self.secondsTo1970) * 1000).rounded()
    guard value.isFinite else { return 0 }
    return Int64(exactly: value) ?? (value < 0 ? .min : .max)
  }

  var isWholeMilliseconds: Bool {
    secondsSince2001 == MirrorDate(milliseconds: milliseconds).secondsSince2001
  }

  package static func == (left: MirrorDate, right: MirrorDate) -> Bool {
    left.milliseconds == right.milliseconds
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(milliseconds) }

  private static let secondsTo1970 = Date.timeIntervalBetween1970AndReferenceDate
}

/// The length and digest of a value's bytes.
package struct MirrorFingerprint: Hashable, Sendable {
  package var size: Int64
  package var digest: Data

  package init(size: Int64, digest: Data) {
    self.size = size
    self.digest = digest
  }

  package init(of data: Data) {
    size = Int64(data.count)
    digest = Data(SHA256.hash(data: data))
  }
}

/// A value's file in the asset folder of a store.
package struct MirrorAsset: Hashable, Sendable {
  package var fingerprint: MirrorFingerprint
  /// The file's name in the folder, or its absolute path after a download; not part of the content.
  package var file: String

  package init(fingerprint: MirrorFingerprint, file: String) {
    self.fingerprint = fingerprint
    self.file = file
  }
}
