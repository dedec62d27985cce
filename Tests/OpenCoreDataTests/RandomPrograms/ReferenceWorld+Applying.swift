/// Determines the applicable steps.
extension ReferenceWorld {
  /// Whether the layout allows the step: cases that Core Data's documentation leaves open are
  /// excluded.
  func isAllowed(_ step: ProgramStep, _ index: Int) -> Bool {
    switch step {
    case .delete where !layout.deletes: return false
    case .toOne(let object, let key, _), .add(let object, let key, _),
      .remove(let object, let key, _),
      .replace(let object, let key, _):
      if let relationship = contexts[index].relationship(object, key), !layout.uses(relationship) {
        return false
      }
    default: break
    }
    switch layout.kind {
    case .single: return true
    case .undoing:
      // It is not documented how a group without changes affects the stacks.
      return !step.changesObjects || after(step, index).working != contexts[index].working
    case .child where index == 0 && step.changesObjects:
      // A child does not validate objects that it has not read, so its parent must have only valid
      // objects.
      return !contexts[1].hasChanges && after(step, index).validationCode == nil
    case .child:
      // The child has not read the parent's own changes.
      return index == 1 || step.isRead || step == .save || !contexts[1].hasChanges
    case .merging:
      // Objects that another context is about to delete get no new links in between.
      return step != .save
        || contexts.indices.allSatisfy { $0 == index || contexts[$0].deleted.isEmpty }
    case .conflicting:
      switch step {
      // These would read single objects in their newest state, beside others in an older one.
      case .refresh, .release, .fetch: return false
      case .refreshAll: return !contexts[index].hasChanges
      default: return true
      }
    }
  }

  /// The state of a context after a step that changes objects.
  private func after(_ step: ProgramStep, _ index: Int) -> ReferenceContext {
    var context = contexts[index]
    change(step, in: &context)
    context.endTurn()
    return context
  }

  /// Whether an app may take the step.
  func applies(_ step: ProgramStep, in context: ReferenceContext) -> Bool {
    switch step {
    case .insert(let object, let kind):
      return !numbers.contains(object) && GraphSchema.kinds.contains(kind)
    case .name(let object, _), .rank(let object, _): return context.isLive(object)
    case .toOne(let object, let key, let other):
      guard context.isLive(object), let relationship = context.relationship(object, key),
        !relationship.description.isToMany
      else { return false }
      return other.map { fits($0, relationship, context) } ?? true
    case .add(let object, let key, let other):
      guard let members = members(object, key, context),
        let relationship = context.relationship(object, key)
      else { return false }
      return !members.contains(other) && fits(other, relationship, context)
    case .remove(let object, let key, let other):
      return context.isLive(other) && members(object, key, context)?.contains(other) ?? false
    case .replace(let object, let key, let others):
      guard let members = members(object, key, context),
        let relationship = context.relationship(object, key)
      else { return false }
      let differs =
        relationship.description.isOrdered ? members != others : Set(members) != Set(others)
      return differs && Set(others).count == others.count && members.allSatisfy(context.isLive)
        && others.allSatisfy { fits($0, relationship, context) }
    case .delete(let object):
      return context.isLive(object)
        && !(context.inserted.contains(object) && isHeld(object, context))
    case .refresh(let object, let merging):
      return context.isLive(object) && !context.inserted.contains(object)
        && (merging || !context.updated.contains(object))
    case .batchInsert(let object, let kind):
      // An object inserted by a batch is not validated, so it must be valid.
      return applies(.insert(object, kind), in: context) && !["Card", "Club"].contains(kind)
        && applies(.batchRank(kind, 0), in: context)
    case .batchRank(_, let rank):
      // A batch request validates nothing, and a save takes the attributes of faults for valid. A
      // deletion that waits would conflict with the changed row.
      return rank <= GraphSchema.rankLimit && layout.hasBatches
        && contexts.allSatisfy(\.deleted.isEmpty)
    case .batchDelete(let kind):
      return GraphSchema.batchKinds.contains(kind) && applies(.batchRank(kind, 0), in: context)
    case .fetch(let kind): return GraphSchema.kinds.contains(kind)
    case .failingSave: return layout.hasFailures
    case .undo, .redo: return layout.kind == .undoing
    case .process, .look, .save, .rollback, .refreshAll, .reset, .mergeAgain, .release: return true
    }
  }

  /// The members of a to-many relationship.
  private func members(_ object: Int, _ key: String, _ context: ReferenceContext) -> [Int]? {
    guard context.isLive(object), let relationship = context.relationship(object, key),
      relationship.description.isToMany
    else { return nil }
    return context.working.destinations(object, relationship)
  }

  private func fits(
    _ object: Int,
    _ relationship: Relationship,
    _ context: ReferenceContext
  )
    -> Bool
  {
    context.isLive(object)
      && GraphSchema.kinds(of: relationship.inverse.description.entity)
        .contains(context.working.objects[object]?.kind ?? "")
  }

  /// Whether a deny rule prevents an object's deletion: the deletion of an unsaved object is not
  /// validated, so it would leave dangling references.
  private func isHeld(_ object: Int, _ context: ReferenceContext) -> Bool {
    context.relationships(object).contains { relationship in
      relationship.description.rule == .denyDeleteRule
        && context.working.destinations(object, relationship).contains(where: context.isLive)
    }
  }
}
