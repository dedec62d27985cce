/// One item of a batch reply: the item, or an error in its place.
package enum ItemResult<Item: Codable & Hashable & Sendable>: Hashable, Sendable {
  case success(Item)
  case failure(ErrorDictionary)

  package var item: Item? {
    if case .success(let item) = self { item } else { nil }
  }

  package var error: ErrorDictionary? {
    if case .failure(let error) = self { error } else { nil }
  }

  package func get() throws(ErrorDictionary) -> Item {
    switch self {
    case .success(let item): return item
    case .failure(let error): throw error
    }
  }
}

private enum ItemResultKeys: String, CodingKey { case serverErrorCode }

extension ItemResult: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: ItemResultKeys.self)
    if container.contains(.serverErrorCode) {
      self = .failure(try ErrorDictionary(from: decoder))
    } else {
      self = .success(try Item(from: decoder))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    switch self {
    case .success(let item): try item.encode(to: encoder)
    case .failure(let error): try error.encode(to: encoder)
    }
  }
}
