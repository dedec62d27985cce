import CloudKitWebServices

/// The sealed contents of a sync token.
struct ChangeToken: Codable, Hashable, Sendable {
  /// The server's incarnation; set when it is sealed.
  var incarnation = ""
  /// The reader it was issued to; set when it is sealed.
  var principal = ReaderID.anonymous
  var partition: PartitionID
  /// Nil for the token of a database; a recreated zone has another number.
  var zone: ZoneNumber?
  var counter: ChangeNumber
  /// The order among changes with the same number: when joining or leaving a share, and in the list
  /// of a database's zones; nil: after all of them.
  var place: ChangeNumber?
  /// While a listing newest first has more pages: the exclusive upper end of the next page.
  var ceiling: ZoneFeed.Position?
  /// While it has more pages: the position where the listing began, for the token at its end.
  var top: ChangeNumber?
  /// While a first listing has more pages: the position where it began.
  ///
  /// Later deletions are reported, so earlier tombstones are not needed.
  var began: ChangeNumber?
  /// While a listing has more pages: the counter when its newest page was read.
  ///
  /// A record that changed up to then was skipped at its former position and expected at its new
  /// one. In restored data that lacks this change, the record is at the former position again.
  var seen: ChangeNumber?
  /// The participation in a zone that is shared as a whole.
  var participation: ChangeNumber?
  /// The incarnation of the storage when the token was read; not sealed.
  var readIn: String?
  /// For the shared database: partition, zone and newest change of each zone, in sequence.
  var sharedZones: [Int64]?

  init(
    zone: ZoneNumber?,
    _ partition: PartitionID,
    counter: ChangeNumber,
    participation: ChangeNumber? = nil
  ) {
    self.partition = partition
    self.zone = zone
    self.counter = counter
    self.participation = participation
  }

  var position: ZoneFeed.Position {
    get { place.map { ZoneFeed.Position(change: counter, place: $0) } ?? .end(of: counter) }
    set {
      counter = newValue.change
      place = newValue.place
    }
  }

  /// The position in the list of a database's zones.
  var zoneListPosition: ZoneListPosition {
    get {
      place.map { ZoneListPosition(change: counter, zone: ZoneNumber($0.rawValue)) }
        ?? ZoneListPosition(change: counter)
    }
    set {
      counter = newValue.change
      place = ChangeNumber(newValue.zone.rawValue)
    }
  }

  /// The newest change of each partition that the client has received.
  var knownChanges: [(PartitionID, ChangeNumber)] {
    guard let sharedZones else {
      return [(partition, max(counter, top ?? .zero, began ?? .zero, seen ?? .zero))]
    }
    return stride(from: 0, to: sharedZones.count - sharedZones.count % 3, by: 3).map { index in
      (PartitionID(rawValue: sharedZones[index]), ChangeNumber(sharedZones[index + 2]))
    }
  }

  /// Whether the numbers are such as the server writes.
  ///
  /// A token is sealed, but keys that were replaced because they leaked still open one, so its
  /// numbers are checked before any arithmetic.
  var isPossible: Bool {
    let changes = [
      counter, place, ceiling?.change, ceiling?.place, top, began, seen, participation,
    ].compactMap { $0 }
    let shared = sharedZones ?? []
    return changes.allSatisfy { $0 >= .zero } && shared.count % 3 == 0
      && stride(from: 2, to: shared.count, by: 3).allSatisfy { shared[$0] >= 0 }
  }

  /// Whether it was issued to a client without a token, before any change was reported.
  var isFirst: Bool { counter == .zero }

  /// Short keys: a client stores a token for each zone and sends it with each request.
  private enum CodingKeys: String, CodingKey {
    case incarnation = "i"
    case principal = "u"
    case partition = "p"
    case zone = "z"
    case counter = "c"
    case place = "l"
    case ceiling = "b"
    case top = "t"
    case began = "n"
    case seen = "m"
    case participation = "s"
    case sharedZones = "d"
  }
}

/// Writes the encoder's bytes directly: the encoder takes longer than ten records of the feed.
extension ChangeToken: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.beginObject()
    if let ceiling {
      json.key("b")
      json.beginObject()
      json.member("c", raw: ceiling.change.rawValue)
      json.member("p", raw: ceiling.place.rawValue)
      json.endObject()
    }
    json.member("c", raw: counter.rawValue)
    if let sharedZones {
      json.key("d")
      json.beginArray()
      for number in sharedZones { json.integer(number) }
      json.endArray()
    }
    json.member("i", incarnation)
    json.member("l", raw: place?.rawValue)
    json.member("m", raw: seen?.rawValue)
    json.member("n", raw: began?.rawValue)
    json.member("p", raw: partition.rawValue)
    json.member("s", raw: participation?.rawValue)
    json.member("t", raw: top?.rawValue)
    json.member("u", principal.encoded)
    json.member("z", raw: zone?.rawValue)
    json.endObject()
  }
}

/// Reads them without the decoder.
extension ChangeToken: JSONReadable {
  init(reading json: inout JSONReader) throws(JSONReader.FallbackToJSONDecoder) {
    var partition: Int64?
    var counter: Int64?
    self.init(zone: nil, PartitionID(rawValue: 0), counter: .zero)
    var members = JSONReader.Members()
    while let name = try json.next(&members) {
      switch name {
      case "c": counter = try json.raw()
      case "i": incarnation = try json.string()
      case "l": place = ChangeNumber(try json.raw())
      case "m": seen = ChangeNumber(try json.raw())
      case "n": began = ChangeNumber(try json.raw())
      case "p": partition = try json.raw()
      case "s": participation = ChangeNumber(try json.raw())
      case "t": top = ChangeNumber(try json.raw())
      case "u": principal = ReaderID(encoded: try json.string())
      case "z": zone = ZoneNumber(try json.raw())
      // Rare keys.
      default: throw JSONReader.FallbackToJSONDecoder()
      }
    }
    guard let partition, let counter else { throw JSONReader.FallbackToJSONDecoder() }
    self.partition = PartitionID(rawValue: partition)
    self.counter = ChangeNumber(counter)
  }
}

extension JSONReader {
  /// Reads a number for a type that wraps one.
  fileprivate mutating func raw() throws(FallbackToJSONDecoder) -> Int64 {
    var members = Members()
    guard try next(&members) == "rawValue" else { throw FallbackToJSONDecoder() }
    let number = try integer()
    guard try next(&members) == nil else { throw FallbackToJSONDecoder() }
    return number
  }
}

extension JSONWriter {
  /// Writes a number of a type that wraps one.
  fileprivate mutating func member(_ name: String, raw number: Int64?) {
    guard let number else { return }
    key(name)
    beginObject()
    key("rawValue")
    integer(number)
    endObject()
  }
}
