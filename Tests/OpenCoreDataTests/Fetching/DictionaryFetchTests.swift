import OpenCoreData
import Testing

@Suite("Fetching dictionaries")
struct DictionaryFetchTests {
  private func expression(
    _ name: String,
    _ format: NSExpression,
    _ type: NSAttributeType = .integer64AttributeType
  ) -> NSExpressionDescription {
    let description = NSExpressionDescription()
    description.name = name
    description.expression = format
    description.expressionResultType = type
    return description
  }

  private func aggregate(_ function: String, _ key: String) -> NSExpression {
    NSExpression(forFunction: function, arguments: [NSExpression(forKeyPath: key)])
  }

  /// Runs a dictionary fetch over twelve posts.
  private func rows(
    _ configure: (NSFetchRequest<NSDictionary>) -> Void
  ) throws -> [[String: AnyHashable]] {
    let container = try FetchWorld.container(posts: 12)
    let context = container.newBackgroundContext()
    return try context.performAndWait {
      let request = NSFetchRequest<NSDictionary>(entityName: "Post")
      request.resultType = .dictionaryResultType
      configure(request)
      return try context.fetch(request).map { dictionary in
        var row: [String: AnyHashable] = [:]
        for (key, value) in dictionary {
          guard let key = key as? String else { continue }
          // Compared as doubles, because an NSNumber equals no Swift number here.
          row[key] = (value as? NSNumber).map { $0.doubleValue } ?? value as? AnyHashable
        }
        return row
      }
    }
  }

  @Test("Without properties each dictionary has all attributes that are not nil")
  func everything() throws {
    let rows = try rows { $0.predicate = NSPredicate(format: "views == 3") }
    #expect(rows.count == 1)
    #expect(rows[0]["title"] as? String == "post 03")
    #expect(rows[0]["views"] as? Double == 3)
    #expect(rows[0]["isDraft"] as? Double == 0)
    #expect(rows[0]["date"] as? Date == Date(timeIntervalSinceReferenceDate: 3))
    #expect(rows[0]["subtitle"] == nil)
  }

  @Test("Properties are given by name, by description or by key path")
  func properties() throws {
    let rows = try rows { request in
      request.propertiesToFetch = [
        "title", "author.name", "author",
        self.expression("doubled", NSExpression(format: "views * 2")),
        self.expression("tagCount", self.aggregate("count:", "tags")),
        self.expression("id", NSExpression.expressionForEvaluatedObject(), .objectIDAttributeType),
      ]
      request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
      request.fetchLimit = 2
      request.fetchOffset = 6
    }
    #expect(rows.map { $0["title"] } == ["post 06", "post 07"])
    #expect(rows.map { $0["author.name"] } == ["Ada", "Bob"])
    #expect(rows.map { $0["doubled"] } == [12, 14])
    #expect(rows.map { $0["tagCount"] } == [2, 0])
    #expect(rows[0]["author"] is NSManagedObjectID)
    #expect((rows[0]["id"] as? NSManagedObjectID)?.entity.name == "Post")
  }

  @Test("Aggregates over all matches return one dictionary")
  func aggregates() throws {
    let rows = try rows { request in
      request.predicate = NSPredicate(format: "views >= 2")
      request.propertiesToFetch = [
        self.expression("sum", self.aggregate("sum:", "views")),
        self.expression("count", self.aggregate("count:", "views")),
        self.expression("max", self.aggregate("max:", "views")),
        self.expression("min", self.aggregate("min:", "views")),
        self.expression("average", self.aggregate("average:", "views"), .doubleAttributeType),
        self.expression("latest", self.aggregate("max:", "date"), .dateAttributeType),
      ]
    }
    #expect(
      rows == [
        [
          "sum": 65, "count": 10, "max": 11, "min": 2, "average": 6.5,
          "latest": Date(timeIntervalSinceReferenceDate: 11),
        ]
      ]
    )
  }

  @Test("A fraction whose result type is Boolean is true", arguments: [(2, 1.0), (1, 0.0)])
  func booleanAggregate(limit: Int, expected: Double) throws {
    let rows = try rows { request in
      request.predicate = NSPredicate(format: "views < %d", limit)
      request.propertiesToFetch = [
        self.expression("average", self.aggregate("average:", "views"), .booleanAttributeType)
      ]
    }
    #expect(rows.count == 1)
    #expect(rows[0]["average"] as? Double == expected)
  }

  @Test("Each group returns one row, and a having predicate filters them")
  func groups() throws {
    func grouped(_ having: NSPredicate?) throws -> [[String: AnyHashable]] {
      try rows { request in
        request.propertiesToFetch = [
          "author.name", "isDraft", self.expression("total", self.aggregate("sum:", "views")),
        ]
        request.propertiesToGroupBy = ["author.name", "isDraft"]
        request.havingPredicate = having
        request.sortDescriptors = [
          NSSortDescriptor(key: "author.name", ascending: true),
          NSSortDescriptor(key: "isDraft", ascending: true),
        ]
      }
    }
    #expect(
      try grouped(nil) == [
        ["author.name": "Ada", "isDraft": 0, "total": 20],
        ["author.name": "Ada", "isDraft": 1, "total": 10],
        ["author.name": "Bob", "isDraft": 0, "total": 31],
        ["author.name": "Bob", "isDraft": 1, "total": 5],
      ]
    )
    #expect(try grouped(NSPredicate(format: "$total > 10")).count == 2)
    #expect(try grouped(NSPredicate(format: "sum:(views) > 10")).count == 2)
  }

  @Test("Distinct results contain equal dictionaries once")
  func distinct() throws {
    let rows = try rows { request in
      request.propertiesToFetch = ["score"]
      request.returnsDistinctResults = true
      request.sortDescriptors = [NSSortDescriptor(key: "score", ascending: false)]
    }
    #expect(rows == [["score": 1.5], ["score": 1.0], ["score": 0.5], ["score": 0.0]])
  }

  @Test("A column with a description that has only a name is nil", arguments: [true, false])
  func namedColumn(inMemory: Bool) throws {
    let library = try Library(inMemory: inMemory)
    let context = library.context()
    try context.performAndWait {
      Reader(context: context).name = "Ada"
      try context.save()
      let column = NSExpressionDescription()
      column.name = "nothing"
      let request = NSFetchRequest<NSDictionary>(entityName: "Reader")
      request.resultType = .dictionaryResultType
      request.propertiesToFetch = ["name", column]
      let found = try context.fetch(request)
      #expect(found.count == 1)
      #expect(found.first?["name"] as? String == "Ada")
      #expect(found.first?["nothing"] == nil)
    }
  }
}
