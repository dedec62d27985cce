/// Objects without duplicates, in the order in which they were added.
///
/// Most to-many relationships are short, so membership is looked up by comparing pointers until the
/// bag has grown past `linearLimit`. Then a table finds an object's index by its address: the
/// inverses of an import grow by thousands of members, each of which is looked up once.
struct ObjectBag {
  private(set) var items: [NSManagedObject] = []
  /// At the hash of an address, or in a slot after it: the object's index plus 1; 0 in a free slot.
  ///
  /// Empty until it is needed, and never more than half full.
  private var table: [Int32] = []
  /// The count of items at the end that were appended without a check for duplicates.
  private var unsettled = 0
  /// Comparing up to this many adjacent pointers costs less than making a table for them.
  private static let linearLimit = 32

  init() {}

  /// The items must be distinct.
  init(distinct items: [NSManagedObject]) {
    self.items = items
  }

  var count: Int { items.count }
  var isEmpty: Bool { items.isEmpty }

  mutating func reserveCapacity(_ count: Int) {
    items.reserveCapacity(count)
  }

  mutating func index(of object: NSManagedObject) -> Int? {
    settle()
    if items.count <= Self.linearLimit { return search(object) }
    makeTable()
    let place = Int(table[entry(of: object)])
    return place == 0 ? nil : place - 1
  }

  /// The place of an object among few; by hand, as a closure would count references.
  private func search(_ object: NSManagedObject) -> Int? {
    items.withUnsafeBufferPointer { items in
      for place in items.indices where items[place] === object { return place }
      return nil
    }
  }

  mutating func contains(_ object: NSManagedObject) -> Bool {
    index(of: object) != nil
  }

  /// Whether the object was not there before.
  @discardableResult
  mutating func append(_ object: NSManagedObject) -> Bool {
    settle()
    if items.count <= Self.linearLimit {
      guard search(object) == nil else { return false }
      if !table.isEmpty { table = [] }
    } else {
      makeTable()
      let entry = entry(of: object)
      guard table[entry] == 0 else { return false }
      table[entry] = Int32(items.count + 1)
    }
    items.append(object)
    return true
  }

  /// Appends an object that should not be in the bag; the check is left to ``settle()``.
  ///
  /// Until ``settle()`` the items may hold it twice.
  mutating func appendUnseen(_ object: NSManagedObject) {
    items.append(object)
    unsettled += 1
  }

  /// Checks the items that were appended without a check, and removes duplicates.
  mutating func settle() {
    if unsettled > 0 { settleItems() }
  }

  private mutating func settleItems() {
    let unseen = items.suffix(unsettled)
    items.removeLast(unsettled)
    unsettled = 0
    for item in unseen { append(item) }
  }

  mutating func insert(_ object: NSManagedObject, at index: Int) {
    settle()
    // The later indexes in the table are raised by one; a full table is made again at its next use.
    guard table.count < (items.count + 1) * 2 else {
      shift(from: index, by: 1)
      items.insert(object, at: index)
      table[entry(of: object)] = Int32(index + 1)
      return
    }
    table = []
    items.insert(object, at: index)
  }

  /// Changes the places in the table that are not before an index.
  ///
  /// It scans the table once without reading an object, which costs a small part of making the
  /// table again.
  private mutating func shift(from index: Int, by difference: Int32) {
    let first = Int32(index + 1)
    table.withUnsafeMutableBufferPointer { table in
      for entry in table.indices where table[entry] >= first { table[entry] += difference }
    }
  }

  /// Removes the object; where the order does not matter, the last item takes its place.
  @discardableResult
  mutating func remove(_ object: NSManagedObject, keepingOrder: Bool) -> Bool {
    guard let index = index(of: object) else { return false }
    if keepingOrder {
      if !table.isEmpty {
        vacate(entry(of: object))
        shift(from: index + 1, by: -1)
      }
      items.remove(at: index)
      return true
    }
    if !table.isEmpty { vacate(entry(of: object)) }
    if let last = items.last, last !== object {
      if !table.isEmpty { table[entry(of: last)] = Int32(index + 1) }
      items[index] = last
    }
    items.removeLast()
    return true
  }

  func contains(where condition: (NSManagedObject) -> Bool) -> Bool {
    items.contains(where: condition)
  }

  /// Removes all objects that meet a condition, in one pass; the others keep their order.
  mutating func removeAll(where condition: (NSManagedObject) -> Bool) {
    guard items.contains(where: condition) else { return }
    settle()
    items.removeAll(where: condition)
    table = []
  }

  mutating func removeAll() {
    items.removeAll()
    unsettled = 0
    table = []
  }

  // MARK: The table

  private static func home(_ object: NSManagedObject, _ mask: Int) -> Int {
    // Objects begin at multiples of 16; the upper bits of a product depend on all bits.
    let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()) >> 4
    return Int(truncatingIfNeeded: (address &* 0x9E37_79B9_7F4A_7C15) >> 32) & mask
  }

  /// The entry of an object, or the empty one where it would be.
  private func entry(of object: NSManagedObject) -> Int {
    items.withUnsafeBufferPointer { items in
      let mask = table.count - 1
      var entry = Self.home(object, mask)
      while table[entry] != 0, items[Int(table[entry]) - 1] !== object {
        entry = (entry + 1) & mask
      }
      return entry
    }
  }

  /// Makes a table with room for one more item, unless there is one.
  private mutating func makeTable() {
    guard table.count < (items.count + 1) * 2 else { return }
    var capacity = 64
    while capacity < (items.count + 1) * 2 { capacity *= 2 }
    table = Array(repeating: 0, count: capacity)
    for (index, item) in items.enumerated() {
      let mask = capacity - 1
      var entry = Self.home(item, mask)
      while table[entry] != 0 { entry = (entry + 1) & mask }
      table[entry] = Int32(index + 1)
    }
  }

  /// Empties an entry; what would have had it moves up, so that no search ends too early.
  private mutating func vacate(_ emptied: Int) {
    let mask = table.count - 1
    var hole = emptied
    var next = emptied
    while true {
      next = (next + 1) & mask
      guard table[next] != 0 else { break }
      let home = Self.home(items[Int(table[next]) - 1], mask)
      if (next - home) & mask >= (next - hole) & mask {
        table[hole] = table[next]
        hole = next
      }
    }
    table[hole] = 0
  }

  // MARK: Invariants

  /// The broken invariants, a sentence each.
  var brokenInvariants: [String] {
    var broken: [String] = []
    let settled = items.count - unsettled
    if settled < 0 { return ["\(unsettled) of \(items.count) items are not checked yet"] }
    if Set(items.prefix(settled).map(ObjectIdentifier.init)).count != settled {
      broken.append("an object is there twice")
    }
    guard !table.isEmpty else { return broken }
    if table.count & (table.count - 1) != 0 { broken.append("the table's size is no power of two") }
    let entries = table.filter { $0 != 0 }
    if entries.count != settled { broken.append("\(entries.count) entries for \(settled) items") }
    for (index, item) in items.prefix(settled).enumerated()
    where table[entry(of: item)] != Int32(index + 1) {
      broken.append("the entry of the item at \(index) is \(table[entry(of: item)])")
    }
    return broken
  }
}
