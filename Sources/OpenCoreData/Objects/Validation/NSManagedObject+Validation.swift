import Foundation

extension NSManagedObject {
  /// Checks every property; several failures become one error with all of them.
  final func validateProperties() throws {
    fireIfFault()
    var failures: [NSError] = []
    let layout = template.layout
    if type(of: self) == template.type, !template.validatesValues {
      for check in template.validation.attributes {
        ValidationError.collect(into: &failures) { try validate(check, value: nil) }
      }
    } else {
      // An override may check any value, so it is called for each.
      for slot in layout.attributes where !slot.isDerived {
        ValidationError.collect(into: &failures) { try validateOverridable(slot) }
      }
    }
    let ruled = relationshipsToValidate()
    for (key, value) in ruled {
      ValidationError.collect(into: &failures) { try validateRelationship(key, value) }
    }
    for check in template.validation.relationships {
      let link = check.isToMany ? template.toManys[check.index] : template.toOnes[check.index]
      // The class's own validation calls the check of the model.
      if ruled.contains(where: { $0.key == link.slot.name }) { continue }
      ValidationError.collect(into: &failures) { try validate(check, link) }
    }
    try ValidationError.raise(failures, object: self)
  }

  /// Whether a fault that got or lost members by their inverses has to be checked.
  ///
  /// Its attributes are as they were saved, so it need not be read where only those are limited.
  final var isCheckedAsFault: Bool {
    if template.validatesUpdate { return true }
    let changed = changedToManys
    if template.validatesValues, !changed.isEmpty { return true }
    return template.validation.relationships.contains { $0.isToMany && changed.contains($0.index) }
  }

  /// Whether an updated object can be checked; the save itself reports a fault without a row.
  final func hasValuesToValidate(isChild: Bool) -> Bool {
    guard state.contains(.fault) else { return true }
    return isCheckedAsFault && (isChild || state.contains(.prefetched))
  }

  /// The relationships that the class validates itself, with their values: those with a rule, or all
  /// where it overrides `validateValue(_:forKey:)`.
  private final func relationshipsToValidate() -> [(key: String, value: AnyObject?)] {
    let members = namedMembers
    let isOverridden =
      type(of: self) == template.type
      ? template.overridesValidation : MethodOverride.validateValue.isPresent(in: type(of: self))
    guard isOverridden || !members.rules.isEmpty else { return [] }
    var found: [(key: String, value: AnyObject?)] = []
    for slot in template.layout.toOnes where isOverridden || members.rule(forKey: slot.name) != nil
    {
      found.append((slot.name, toOne(at: slot.index)))
    }
    for slot in template.layout.toManys {
      // Without a rule, a relationship that did not change is valid, and need not be read.
      let isChanged =
        state.contains(.inserted) || toManyStorage(ifTouched: slot.index)?.hasChanges ?? false
      guard isOverridden && isChanged || members.rule(forKey: slot.name) != nil else { continue }
      found.append((slot.name, collection(at: slot.index) as AnyObject))
    }
    return found
  }

  /// Calls `validateValue(_:forKey:)`, which may replace the value.
  private final func validateRelationship(_ key: String, _ value: AnyObject?) throws {
    var pointee = value
    try validateValue(&pointee, forKey: key)
    if pointee !== value { _ = setModeledValue(pointee, forKey: key) }
  }

  /// Calls `validateValue(_:forKey:)`, which may replace the value.
  private final func validateOverridable(_ slot: AttributeSlot) throws {
    let before = attributeValue(at: slot.index).map { $0 as AnyObject }
    var pointee = before
    try validateValue(&pointee, forKey: slot.name)
    if pointee !== before { setAttributeValue(pointee, at: slot.index) }
  }

  /// Checks a value against the model; the base of `validateValue(_:forKey:)`.
  final func validateModeledValue(_ value: AnyObject?, forKey key: String) throws {
    switch template.layout.slot(named: key) {
    case .attribute(let index):
      guard let check = template.validation.check(ofAttribute: index) else { return }
      try validate(check, value: .some(value.map { $0 as Any }))
    case .toOne(let index):
      try validate(value, template.toOnes[index], relationshipCheck(index, isToMany: false))
    case .toMany(let index):
      try validate(value, template.toManys[index], relationshipCheck(index, isToMany: true))
    case .fetched, nil:
      return
    }
  }

  private final func relationshipCheck(
    _ index: Int,
    isToMany: Bool
  ) -> ValidationPlan.RelationshipCheck? {
    template.validation.relationships.first { $0.index == index && $0.isToMany == isToMany }
  }

  // MARK: Attributes

  /// Checks a given value, or the object's own where none is given.
  private final func validate(_ check: ValidationPlan.AttributeCheck, value: Any??) throws {
    let row: RowValue
    if let value {
      row = try convert(value, check)
    } else {
      row = self.value(at: check.index)
    }
    let slot = template.layout.attributes[check.index]
    let isMissing: Bool
    if slot.holdsObjects {
      let box = value ?? objectValues?[check.index]
      isMissing = row.isNull && box == nil
      if row.isNull, let box, !slot.isTransient, TransformableCoding.encode(box, of: slot) == nil {
        throw ValidationError.make(
          NSManagedObjectValidationError,
          self,
          slot.name,
          value: box,
          TransformableCoding.refusal(of: slot)
        )
      }
    } else {
      isMissing = row.isNull
    }
    if isMissing {
      // A transient value is in no row: an object that was read has none before the app sets one.
      guard check.isMandatory, !slot.isTransient || state.contains(.inserted) else { return }
      throw ValidationError.make(
        NSValidationMissingMandatoryPropertyError,
        self,
        slot.name,
        value: nil,
        "\(slot.name) is a required value."
      )
    }
    guard !check.limits.isEmpty || !check.rules.isEmpty else { return }
    if let code = brokenLimit(row, check) {
      throw ValidationError.make(
        code,
        self,
        slot.name,
        value: AttributeConversion.boxed(row, as: slot.type),
        ValidationError.sentence(code, slot.name),
        predicate: slot.description.limits.rules.first { $0.warning == .code(code) }?.predicate
      )
    }
    for rule in check.rules {
      guard let predicate = rule.predicate else { continue }
      let boxed = AttributeConversion.boxed(row, as: slot.type)
      guard !predicate.evaluate(with: boxed) else { continue }
      throw ValidationError.make(rule, self, slot.name, value: boxed, predicate: predicate)
    }
  }

  private final func convert(
    _ value: Any?,
    _ check: ValidationPlan.AttributeCheck
  ) throws -> RowValue {
    let slot = template.layout.attributes[check.index]
    guard let value, !(value is NSNull) else { return .null }
    if slot.holdsObjects { return TransformableCoding.encode(value, of: slot) ?? .null }
    guard let row = AttributeConversion.rowValue(value, as: slot.type) else {
      throw ValidationError.make(
        NSManagedObjectValidationError,
        self,
        slot.name,
        value: value,
        "\(slot.name) is of an unacceptable type: \(AttributeConversion.className(of: value))."
      )
    }
    return row
  }

  private final func brokenLimit(
    _ value: RowValue,
    _ check: ValidationPlan.AttributeCheck
  ) -> Int? {
    let limits = check.limits
    switch value {
    case .integer(let number):
      return brokenBound(Decimal(number), limits)
    case .double(let number):
      guard number.isFinite else { return nil }
      let exact = Decimal(nearest: number)
      // Beyond all decimals only the sign counts.
      return brokenBound(
        exact.isNaN ? (number < 0 ? -.greatestFiniteMagnitude : .greatestFiniteMagnitude) : exact,
        limits
      )
    case .decimal(let box):
      return brokenBound(box.value, limits)
    case .date(let seconds):
      let date = Date(timeIntervalSinceReferenceDate: seconds)
      if let minimum = limits.minimumDate, date < minimum { return NSValidationDateTooSoonError }
      if let maximum = limits.maximumDate, date > maximum { return NSValidationDateTooLateError }
      return nil
    case .string(let text):
      // Lengths count UTF-16 units, as `NSString` does.
      let length = text.utf16.count
      if let minimum = limits.minimumLength, length < minimum {
        return NSValidationStringTooShortError
      }
      if let maximum = limits.maximumLength, length > maximum {
        return NSValidationStringTooLongError
      }
      if let pattern = check.pattern {
        let range = NSRange(location: 0, length: length)
        if pattern.firstMatch(in: text, range: range) == nil {
          return NSValidationStringPatternMatchingError
        }
      }
      return nil
    default:
      return nil
    }
  }

  private final func brokenBound(_ number: Decimal, _ limits: AttributeLimits) -> Int? {
    if let minimum = limits.minimum, number < minimum { return NSValidationNumberTooSmallError }
    if let maximum = limits.maximum, number > maximum { return NSValidationNumberTooLargeError }
    return nil
  }

  // MARK: Relationships

  /// Checks a value that is given for a relationship.
  private final func validate(
    _ value: AnyObject?,
    _ link: ObjectTemplate.Link,
    _ check: ValidationPlan.RelationshipCheck?
  ) throws {
    let value = value is NSNull ? nil : value
    var members: [NSManagedObject] = []
    if let value {
      let given = link.slot.isToMany ? ExpressionValue.members(of: value) : [value]
      members = given?.compactMap { $0 as? NSManagedObject } ?? []
      guard let given, members.count == given.count, members.allSatisfy({ $0.fits(link) }) else {
        throw ValidationError.make(
          NSManagedObjectValidationError,
          self,
          link.slot.name,
          value: value,
          "\(link.slot.name) is of an unacceptable type: \(AttributeConversion.className(of: value)) "
            + "instead of \(link.slot.isToMany ? "a collection of " : "")"
            + "\(link.slot.destinationEntity.name ?? "an entity")."
        )
      }
    }
    guard let check else { return }
    if link.slot.isToMany {
      try validate(members, check, link, value: value)
    } else if value == nil {
      throw missing(link)
    }
  }

  private final func missing(_ link: ObjectTemplate.Link) -> NSError {
    ValidationError.make(
      NSValidationMissingMandatoryPropertyError,
      self,
      link.slot.name,
      value: nil,
      "\(link.slot.name) is a required value."
    )
  }

  /// Checks the object's own value.
  private final func validate(
    _ check: ValidationPlan.RelationshipCheck,
    _ link: ObjectTemplate.Link
  ) throws {
    guard check.isToMany else {
      if let rowIndex = link.slot.rowIndex, value(at: rowIndex).isNull { throw missing(link) }
      return
    }
    // An untouched relationship is valid, as it was when it was saved.
    guard let storage = toManyStorage(ifTouched: check.index) ?? untouchedInserted(check.index),
      state.contains(.inserted) || storage.hasChanges
    else { return }
    if !storage.isLoaded { _ = loadedToMany(at: check.index) }
    try validate(storage.members.items, check, link, value: nil)
  }

  private final func validate(
    _ members: [NSManagedObject],
    _ check: ValidationPlan.RelationshipCheck,
    _ link: ObjectTemplate.Link,
    value: Any?
  ) throws {
    let count = members.count { !$0.state.contains(.deleted) }
    if count < check.minimum, !(count == 0 && check.isOptional) {
      let code = NSValidationRelationshipLacksMinimumCountError
      throw ValidationError.make(
        code,
        self,
        link.slot.name,
        value: value ?? collection(at: check.index),
        ValidationError.sentence(code, link.slot.name)
      )
    }
    if check.maximum > 0, count > check.maximum {
      let code = NSValidationRelationshipExceedsMaximumCountError
      throw ValidationError.make(
        code,
        self,
        link.slot.name,
        value: value ?? collection(at: check.index),
        ValidationError.sentence(code, link.slot.name)
      )
    }
  }

  private final func untouchedInserted(_ index: Int) -> ToManyStorage? {
    state.contains(.inserted) ? toManyStorage(at: index) : nil
  }

  /// Whether the object prevents the deletion of its owner by a deny rule.
  ///
  /// An object that was inserted and deleted since the last save has left the context.
  private final var isHoldingDeletions: Bool { hasContext && !state.contains(.deleted) }

  /// The base of `validateForDelete()`.
  final func validateDenyRules() throws {
    var failures: [NSError] = []
    func deny(_ name: String, _ value: Any?) {
      failures.append(
        ValidationError.make(
          NSValidationRelationshipDeniedDeleteError,
          self,
          name,
          value: value,
          "\(name) is not empty, so \(template.layout.entityName) cannot be deleted."
        )
      )
    }
    for index in template.validation.deniedToOnes {
      if let object = toOne(at: index), object.isHoldingDeletions {
        deny(template.toOnes[index].slot.name, object)
      }
    }
    for index in template.validation.deniedToManys {
      let members = loadedToMany(at: index).members.items
      if members.contains(where: \.isHoldingDeletions) {
        deny(template.toManys[index].slot.name, collection(at: index))
      }
    }
    try ValidationError.raise(failures, object: self)
  }
}
