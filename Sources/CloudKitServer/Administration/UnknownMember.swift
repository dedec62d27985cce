/// A member of a request's JSON for which the decoded value has no property.
struct UnknownMember: Hashable, CustomStringConvertible {
  var name: String
  /// The members of the same object that the call has.
  var known: [String]

  var description: String {
    "There is no member '\(name)'; the call takes \(known.sorted().joined(separator: ", "))."
  }

  /// The first unknown member, by name, of the object or of an object in it; nil if there is none.
  ///
  /// The names of members are those of the properties: no request of the admin API has other keys.
  /// Values that are not structures, such as dictionaries, take any member.
  init?(in json: Any, of value: Any) {
    let mirror = Mirror(reflecting: value)
    if mirror.displayStyle == .optional {
      guard let wrapped = mirror.children.first else { return nil }
      self.init(in: json, of: wrapped.value)
      return
    }
    guard let object = json as? [String: Any], mirror.displayStyle == .struct else { return nil }
    let properties = mirror.children.reduce(into: [String: Any]()) { found, child in
      if let label = child.label { found[label] = child.value }
    }
    for (name, member) in object.sorted(by: { $0.key < $1.key }) {
      guard let property = properties[name] else {
        self.init(name: name, known: Array(properties.keys))
        return
      }
      guard let inner = UnknownMember(in: member, of: property) else { continue }
      self = inner
      return
    }
    return nil
  }

  private init(name: String, known: [String]) {
    self.name = name
    self.known = known
  }
}
