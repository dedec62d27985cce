import Foundation
import Testing

@testable import OpenCoreData

/// What the properties of a class take from key-value coding.
@Suite("Values of named properties")
struct NamedValueTests {
  private enum Level: Int16 {
    case low = 1
  }

  @Test("Numbers are converted as NSNumber converts them")
  func numbers() {
    #expect(NamedValue.unboxed(0.1, as: Float.self) == 0.1)
    #expect(NamedValue.unboxed(NSNumber(value: 0.1), as: Float?.self) == 0.1)
    #expect(NamedValue.unboxed(1.5, as: Decimal.self) == 1.5)
    #expect(NamedValue.unboxed(3, as: NSDecimalNumber.self) == 3)
    #expect(NamedValue.unboxed(NSDecimalNumber(string: "2.25"), as: Double.self) == 2.25)
    #expect(NamedValue.unboxed(70_000, as: Int16.self) == 4464)
    #expect(NamedValue.unboxed(3.7, as: Int64.self) == 3)
    #expect(NamedValue.unboxed(2, as: Bool.self) == true)
    #expect(NamedValue.unboxed(1.5, as: CGFloat.self) == 1.5)
    #expect(NamedValue.unboxed("text", as: Int.self) == nil)
  }

  @Test("An enumeration takes its raw values, also where it may be nil")
  func enumerations() {
    #expect(NamedValue.unboxed(1, as: Level.self) == .low)
    #expect(NamedValue.unboxed(NSNumber(value: 1), as: Level?.self) == .low)
    #expect(NamedValue.unboxed(9, as: Level.self) == nil)
  }

  @Test("Nil is the empty value of strings, bytes and collections, and none of a number")
  func missing() {
    #expect(NamedValue.unboxed(nil, as: String.self) == "")
    #expect(NamedValue.unboxed(nil, as: Data.self) == Data())
    #expect(NamedValue.unboxed(nil, as: Set<NSManagedObject>.self) == [])
    #expect(NamedValue.unboxed(nil, as: String?.self) == .some(nil))
    #expect(NamedValue.unboxed(nil, as: Int.self) == nil)
    #expect(NamedValue.isNumber(Int.self) && !NamedValue.isNumber(Int?.self))
  }
}
