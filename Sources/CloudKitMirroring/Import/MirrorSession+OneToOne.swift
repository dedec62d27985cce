import Foundation
import OpenCoreData

extension MirrorSession {
  /// Settles one-to-one relationships after a whole feed has been read, `limit` at a time.
  ///
  /// Both records have a field, and two devices can leave them with different values. One side
  /// decides (position 0 of the ordering rule), unless its value contradicts a pair that agrees. A
  /// device that finds a field with another value corrects it, so that server and stores agree.
  ///
  /// Returns where to continue, or nil at the end.
  package func settleOneToOnes(
    after position: (String, String),
    limit: Int
  ) throws -> (String, String)? {
    let links = try metadata.oneToOneLinks(after: position, limit: limit)
    for link in links {
      guard let record = try metadata.record(named: link.record), record.key != nil,
        let toOne = mapping.entity(named: record.entityName)?.toOne(link.property),
        let partner = toOne.partner
      else {
        try metadata.unpark(record: link.record, property: link.property)
        continue
      }
      let isSettled =
        toOne.isDeciding
        ? try settleDecider(record, toOne, partner.name)
        : try settleFollower(record, toOne, partner.name)
      guard isSettled else { continue }
      try metadata.unpark(record: link.record, property: link.property)
      try writePresentNames(link.record)
    }
    guard links.count == limit, let last = links.last else { return nil }
    return (last.record, last.property)
  }

  /// Returns false while the other object has not been imported.
  private func settleDecider(
    _ record: RecordMetadata,
    _ toOne: ToOneMapping,
    _ partner: String
  ) throws -> Bool {
    guard let target = try claim(of: record, toOne.name) else {
      try setPartner(of: record, toOne, nil)
      return true
    }
    guard let other = try staying(target) else {
      try setPartner(of: record, toOne, nil)
      return false
    }
    let counterclaim = try claim(of: other, partner)
    if let counterclaim, counterclaim != record.name,
      let rival = try staying(counterclaim),
      try claim(of: rival, toOne.name) == target
    {
      // The other object and a third one refer to each other.
      if try localPartner(of: record, toOne) == target { try setPartner(of: record, toOne, nil) }
      try mark(record, [toOne.name])
      return true
    }
    try setPartner(of: record, toOne, other)
    if counterclaim != record.name { try remark(other.name, partner) }
    return true
  }

  private func settleFollower(
    _ record: RecordMetadata,
    _ toOne: ToOneMapping,
    _ partner: String
  ) throws -> Bool {
    let claimed = try claim(of: record, toOne.name)
    if let former = try localPartner(of: record, toOne), former != claimed,
      try metadata.isGoneRecord(former)
    {
      // The deletion of the former partner is not to take this object along.
      try setPartner(of: record, toOne, nil)
    }
    if let claimed {
      guard let other = try staying(claimed) else { return false }
      if try claim(of: other, partner) == record.name {
        try setPartner(of: record, toOne, other)
        return true
      }
    }
    // No object of the deciding side refers to this one.
    let present = try localPartner(of: record, toOne)
    if let present, let other = try metadata.record(named: present),
      try claim(of: other, partner) != record.name
    {
      try setPartner(of: record, toOne, nil)
    }
    let stands = try localPartner(of: record, toOne)
    if stands != claimed { try mark(record, [toOne.name]) }
    return true
  }

  /// The record of an object that is here and that the feed did not delete.
  private func staying(_ name: String) throws -> RecordMetadata? {
    guard let record = try metadata.record(named: name), record.key != nil,
      try !metadata.isGoneRecord(name)
    else { return nil }
    return record
  }

  /// A record's claim to a partner in a one-to-one relationship: an unexported edit before the server's field.
  private func claim(of record: RecordMetadata, _ property: String) throws -> String? {
    guard let toOne = mapping.entity(named: record.entityName)?.toOne(property) else { return nil }
    if record.unconfirmed.contains(property) { return try localPartner(of: record, toOne) }
    guard let base = record.base, let entity = mapping.entity(named: record.entityName),
      case .string(let name) = entity.reading(base).fields[toOne.field], !name.isEmpty
    else { return nil }
    return name
  }

  private func localPartner(of record: RecordMetadata, _ toOne: ToOneMapping) throws -> String? {
    guard let reference = reference(of: record), let row = try rows.row(reference),
      case .reference(let destination) = row.values[toOne.index]
    else { return nil }
    return try recordName(of: destination)
  }

  /// Links two objects both ways, or unlinks one; former partners are unlinked.
  private func setPartner(
    of record: RecordMetadata,
    _ toOne: ToOneMapping,
    _ other: RecordMetadata?
  ) throws {
    guard let reference = reference(of: record), let row = try rows.row(reference) else { return }
    let destination = other.flatMap(self.reference(of:))
    let present: RowReference? =
      if case .reference(let present) = row.values[toOne.index] { present } else { nil }
    if let present, present != destination { try clear(present, toOne.partner?.name) }
    if let destination, let other,
      let back = mapping.entity(named: other.entityName)?.toOne(toOne.partner?.name ?? ""),
      let otherRow = try rows.row(destination)
    {
      if case .reference(let former) = otherRow.values[back.index], former != reference {
        try clear(former, toOne.name)
      }
      if otherRow.values[back.index] != .reference(reference) {
        try rows.update(destination, set: [back.index: .reference(reference)])
      }
    }
    let value: RowValue = destination.map { .reference($0) } ?? .null
    if try rows.row(reference)?.values[toOne.index] != value {
      try rows.update(reference, set: [toOne.index: value])
    }
  }

  private func clear(_ reference: RowReference, _ property: String?) throws {
    guard let property, let entityName = rows.entityName(of: reference),
      let toOne = mapping.entity(named: entityName)?.toOne(property),
      let row = try rows.row(reference), !row.values[toOne.index].isNull
    else { return }
    try rows.update(reference, set: [toOne.index: .null])
  }

  private func remark(_ name: String, _ property: String) throws {
    // The record is read again, as linking may have changed its metadata.
    if let record = try metadata.record(named: name) { try mark(record, [property]) }
  }
}
