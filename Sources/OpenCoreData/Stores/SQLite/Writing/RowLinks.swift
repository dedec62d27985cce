/// The members of one to-many relationship of one row, as the row cache stores them: in one machine
/// word.
///
/// Most of them have one member, which is in the word itself where its key and its entity's number
/// fit; otherwise the word is the address of a list.
struct RowLinks {
  let word: UInt

  /// Objects are aligned to 16 bytes, so the last bits of an address are free.
  private static let singleBit: UInt = 1
  private static let emptyWord: UInt = 2
  private static let entityBits = 16

  init(word: UInt) {
    self.word = word
  }

  /// The caller must call ``release()`` when it no longer needs the value.
  init(_ members: ArraySlice<RowMember>) {
    if members.isEmpty {
      word = Self.emptyWord
    } else if members.count == 1, let single = members.first.flatMap({ Self.single($0.reference) })
    {
      word = single
    } else {
      word = UInt(bitPattern: Unmanaged.passRetained(RowLinkList.make(members)).toOpaque())
    }
  }

  private static func single(_ reference: RowReference) -> UInt? {
    guard let entity = UInt16(exactly: reference.entityNumber), reference.key >= 0,
      reference.key < 1 << (63 - Self.entityBits)
    else { return nil }
    return UInt(reference.key) << (entityBits + 1) | UInt(entity) << 1 | singleBit
  }

  private var list: Unmanaged<RowLinkList>? {
    guard word & (Self.singleBit | Self.emptyWord) == 0 else { return nil }
    return UnsafeRawPointer(bitPattern: word).map { Unmanaged.fromOpaque($0) }
  }

  /// The bytes that the members take outside the word.
  var byteCount: Int { list?._withUnsafeGuaranteedRef { $0.byteCount } ?? 0 }

  @inline(__always)
  func forEach(_ body: (RowReference) -> Void) {
    if word & Self.singleBit != 0 {
      let entity = UInt16(truncatingIfNeeded: word >> 1)
      let key = Int64(word >> (Self.entityBits + 1))
      body(RowReference(entityNumber: Int32(entity), key: key))
    } else if let list {
      list._withUnsafeGuaranteedRef { list in
        list.withUnsafeMutablePointers { count, references in
          for place in 0..<count.pointee { body(references[place]) }
        }
      }
    }
  }

  func release() { list?.release() }
}

/// More than one member, in order; the header is their number.
private final class RowLinkList: ManagedBuffer<Int, RowReference> {
  var byteCount: Int { 32 + header * MemoryLayout<RowReference>.stride }

  static func make(_ members: ArraySlice<RowMember>) -> RowLinkList {
    let made = RowLinkList.create(minimumCapacity: members.count) { _ in members.count }
    made.withUnsafeMutablePointerToElements { target in
      for (place, member) in members.enumerated() {
        (target + place).initialize(to: member.reference)
      }
    }
    return unsafeDowncast(made, to: RowLinkList.self)
  }
}
