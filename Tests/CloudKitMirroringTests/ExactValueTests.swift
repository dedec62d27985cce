import CloudKitMirroring
import CloudKitTesting
import CloudKitWebServices
import Foundation
import OpenCoreData
import Testing

@Suite("Numbers and dates that CloudKit's types cannot represent") struct ExactValueTests {
  private static let digits = "12345678901234567890.123456789"

  private static func model(isExact: Bool) -> NSManagedObjectModel {
    let model = NSManagedObjectModel()
    model.entities = [
      BlogModel.entity(
        "Price",
        [
          BlogModel.attribute("amount", .decimalAttributeType) {
            if isExact { $0.userInfo = ["WatershedExactDecimal": "YES"] }
          },
          BlogModel.attribute("date", .dateAttributeType),
          BlogModel.attribute("name", .stringAttributeType),
        ]
      )
    ]
    return model
  }

  private func attribute(isExact: Bool = false) throws -> AttributeMapping {
    let mapping = ModelMapping(model: Self.model(isExact: isExact), configuration: nil)
    return try #require(mapping.entity(named: "Price")?.attribute("amount"))
  }

  private func amount(_ device: TestDevice) throws -> String? {
    try device.save { context in
      (try context.all("Price").first?.value(forKey: "amount") as? NSDecimalNumber)?
        .decimalValue.description
    }
  }

  private func decimal(_ text: String) throws -> NSDecimalNumber {
    NSDecimalNumber(decimal: try #require(Decimal(string: text)))
  }

  @Test("A decimal of any size that a double represents is imported as a number, never as NaN")
  func farFromZero() throws {
    let attribute = try attribute()
    let decimals = [
      Decimal.greatestFiniteMagnitude, -Decimal.greatestFiniteMagnitude,
      Decimal.leastNonzeroMagnitude, try #require(Decimal(string: "1e127")),
      try #require(Decimal(string: "1.25e-126")), try #require(Decimal(string: "-0.1")),
    ]
    for decimal in decimals {
      let sent = try #require(attribute.mirrorValue(.decimal(RowDecimal(decimal))))
      guard case .decimal(let received)? = attribute.rowValue(sent) else {
        Issue.record("\(decimal) is not received")
        continue
      }
      #expect(attribute.mirrorValue(.decimal(received)) == sent, "\(decimal)")
      #expect(!received.value.isNaN)
    }
    for number in [3.4e165, 1e150, 2.5e-120, 0.1, 1e22] {
      guard case .decimal(let received)? = attribute.rowValue(.double(number)) else {
        Issue.record("\(number) is not received")
        continue
      }
      let back = try #require(attribute.mirrorValue(.decimal(received)))
      guard case .double(let double) = back else { continue }
      #expect(abs(double / number - 1) < 1e-8)
    }
    #expect(attribute.rowValue(.double(1e300)) == nil)
    #expect(attribute.rowValue(.double(1e-300)) == nil)
  }

  @Test("A decimal that the model marks as exact reaches other devices with all its digits")
  func companion() async throws {
    try await World.with("phone", "pad", model: Self.model(isExact: true)) { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      let value = try decimal(Self.digits)
      try phone.save { _ = $0.make("Price", ["amount": value, "name": "a"]) }
      try await world.settle(phone, pad)
      #expect(try amount(pad) == Self.digits)
      // A number that differs only in its digits is an edit.
      let other = try decimal("12345678901234567890.123456788")
      try pad.save { try $0.first("Price", "name", "a").setValue(other, forKey: "amount") }
      try await world.settle(phone, pad)
      #expect(try amount(phone) == "12345678901234567890.123456788")
      // A decimal that a double represents needs no text.
      let plain = try decimal("2.5")
      try phone.save { try $0.first("Price", "name", "a").setValue(plain, forKey: "amount") }
      try await world.settle(phone, pad)
      #expect(try amount(pad) == "2.5")
      let snapshot = try #require(try pad.snapshot().values.first)
      #expect(snapshot["CD_amount_wsExact"] == nil)
    }
  }

  @Test("An edit by an app that writes only the double wins over the text beside it")
  func olderApp() throws {
    let attribute = try attribute(isExact: true)
    var fields = FieldBag([
      "CD_amount": .double(2.5), "CD_amount_wsExact": .string(Self.digits),
    ])
    #expect(
      attribute.rowValue(.double(2.5), in: fields)
        == .decimal(RowDecimal(try #require(Decimal(string: "2.5"))))
    )
    let number = try #require(Double(Self.digits))
    fields["CD_amount"] = .double(number)
    #expect(
      attribute.rowValue(.double(number), in: fields)
        == .decimal(RowDecimal(try #require(Decimal(string: Self.digits))))
    )
  }

  @Test(
    "The schema has a text beside a double only where the model marks decimals as exact"
  )
  func schema() throws {
    for isExact in [true, false] {
      let schema = cloudKitSchema(for: Self.model(isExact: isExact))
      let type = try #require(schema.recordTypes.first { $0.name == "CD_Price" })
      #expect(type.fields.contains { $0.name == "CD_amount_wsExact" } == isExact)
    }
    let attribute = try attribute()
    let digits = try #require(Decimal(string: Self.digits))
    #expect(attribute.exactText(.decimal(RowDecimal(digits))) == nil)
  }

  @Test("A date finer than a millisecond, and a long decimal, are no edits of their own")
  func comparisons() async throws {
    try await World.with("phone", "pad", model: Self.model(isExact: false)) { world, devices in
      let (phone, pad) = (devices[0], devices[1])
      let date = Date(timeIntervalSinceReferenceDate: 700_000_000.123_456_7)
      let value = try decimal(Self.digits)
      try phone.save { _ = $0.make("Price", ["amount": value, "date": date, "name": "a"]) }
      try await world.settle(phone, pad)
      func received(_ device: TestDevice) throws -> Date? {
        try device.save { try $0.all("Price").first?.value(forKey: "date") as? Date }
      }
      #expect(try received(pad) == date)
      // The pad's decimal is less exact; an edit of another property sends neither, in either
      // direction.
      try pad.save { try $0.first("Price", "name", "a").setValue("b", forKey: "name") }
      try await world.settle(phone, pad)
      #expect(try received(phone) == date)
      #expect(try amount(phone) == Self.digits)
      phone.faults.forgetRequests()
      // The same value, set again with less precision, is no change.
      let coarse = Date(timeIntervalSinceReferenceDate: 700_000_000.123)
      try pad.save { try $0.first("Price", "name", "b").setValue(coarse, forKey: "date") }
      try phone.save { try $0.first("Price", "name", "b").setValue(coarse, forKey: "date") }
      try await world.settle(phone, pad)
      #expect(!phone.faults.requests.contains("records/modify"))
    }
  }

  @Test("Decimals older than the exact mark keep their digits, and other devices get them")
  func switchedOn() async throws {
    let world = try await World(model: Self.model(isExact: false))
    let (old, pad) = (try await world.device("phone"), try await world.device("pad"))
    let value = try decimal(Self.digits)
    try old.save { _ = $0.make("Price", ["amount": value, "name": "a"]) }
    try await world.settle(old, pad)
    try await old.quit()
    try pad.save { try $0.first("Price", "name", "a").setValue("b", forKey: "name") }
    try await pad.sync()
    let phone = try await world.device("phone", model: Self.model(isExact: true))
    try await world.settle(phone)
    #expect(try amount(phone) == Self.digits)
    // With the new model, the pad reads the text.
    try await pad.sync()
    #expect(try amount(pad) != Self.digits)
    try await pad.quit()
    let newPad = try await world.device("pad", model: Self.model(isExact: true))
    try await world.settle(newPad, phone)
    #expect(try amount(newPad) == Self.digits)
    #expect(try amount(phone) == Self.digits)
    #expect(try phone.snapshot() == newPad.snapshot())
    for device in [phone, newPad] { try await device.quit() }
  }

  @Test("Integers with the same double are different values")
  func integersBeyondDoubles() {
    let double = MirrorValue.double(9_007_199_254_740_992)
    #expect(MirrorValue.integer(9_007_199_254_740_992).hasSameContent(as: double))
    #expect(!MirrorValue.integer(9_007_199_254_740_993).hasSameContent(as: double))
    #expect(!double.hasSameContent(as: .integer(9_007_199_254_740_993)))
    #expect(!MirrorValue.integer(.max).hasSameContent(as: .double(0x1p63)))
  }
}
