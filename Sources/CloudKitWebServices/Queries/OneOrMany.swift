/// An array, or a single object that older clients send instead.
struct OneOrMany<Item: Decodable>: Decodable {
  var items: [Item]

  init(from decoder: any Decoder) throws {
    if (try? decoder.unkeyedContainer()) != nil {
      items = try [Item](from: decoder)
    } else {
      items = [try Item(from: decoder)]
    }
  }
}
