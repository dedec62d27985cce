import Foundation
import OpenCoreData
import Testing

/// Prices are decimal: a tenth and two tenths are exactly three tenths in every sum.
@Suite("Decimal numbers are exact")
struct DecimalTests {
  private func decimal(_ text: String) -> NSDecimalNumber { NSDecimalNumber(string: text) }

  /// Two posts by each of two authors; the last price is nil.
  private func with(
    _ prices: [String?] = ["0.1", "0.2", "12345678901234567890.12", nil],
    _ type: String = NSSQLiteStoreType,
    _ body: (NSManagedObjectContext) throws -> Void
  ) throws {
    let container = try FetchWorld.container(type: type)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let authors = (0..<2).map { number in
        let author = WorldAuthor(context: context)
        author.name = "author \(number)"
        return author
      }
      for (number, price) in prices.enumerated() {
        let post = WorldPost(context: context)
        post.title = "post \(number)"
        post.setValue(price.map { decimal($0) }, forKey: "price")
        post.author = authors[number / 2]
      }
      try context.save()
      try body(context)
    }
  }

  @Test("Collection operators of key-value coding return an NSDecimalNumber")
  func keyValueCoding() throws {
    try with { context in
      let request = NSFetchRequest<WorldAuthor>(entityName: "Author")
      request.predicate = NSPredicate(format: "name == 'author 0'")
      let author = try #require(try context.fetch(request).first)
      let sum = author.value(forKeyPath: "posts.@sum.price")
      #expect(sum as? NSDecimalNumber == decimal("0.3"))
      #expect(author.value(forKeyPath: "posts.@avg.price") as? NSDecimalNumber == decimal("0.15"))
      #expect(author.value(forKeyPath: "posts.@max.price") as? NSDecimalNumber == decimal("0.2"))
      #expect(author.value(forKeyPath: "posts.@min.price") as? NSDecimalNumber == decimal("0.1"))
    }
  }

  @Test(
    "Functions of a dictionary fetch return an NSDecimalNumber",
    arguments: [NSSQLiteStoreType, NSInMemoryStoreType]
  )
  func dictionaries(_ type: String) throws {
    try with(["0.1", "0.2", "1.25", nil], type) { context in
      let request = NSFetchRequest<NSDictionary>(entityName: "Post")
      request.resultType = .dictionaryResultType
      request.propertiesToFetch = ["sum:", "average:", "min:", "max:"].flatMap { function in
        [NSAttributeType.decimalAttributeType, .undefinedAttributeType].map { type in
          let description = NSExpressionDescription()
          description.name = function + (type == .undefinedAttributeType ? "?" : "")
          description.expression = NSExpression(
            forFunction: function,
            arguments: [NSExpression(forKeyPath: "price")]
          )
          description.expressionResultType = type
          return description
        }
      }
      let row = try #require(try context.fetch(request).first)
      for suffix in ["", "?"] {
        #expect(row["sum:" + suffix] as? NSDecimalNumber == decimal("1.55"))
        #expect(row["min:" + suffix] as? NSDecimalNumber == decimal("0.1"))
        #expect(row["max:" + suffix] as? NSDecimalNumber == decimal("1.25"))
        let average = try #require(row["average:" + suffix] as? NSDecimalNumber)
        #expect(average.stringValue.hasPrefix("0.516666666666666666666666"))
      }
    }
  }

  @Test("Predicates in SQL and in memory agree on sums, also of numbers that no double represents")
  func predicates() throws {
    try with { context in
      let authors = try context.fetch(NSFetchRequest<WorldAuthor>(entityName: "Author"))
      for format in [
        "posts.@sum.price == 0.3", "posts.@avg.price == 0.15", "posts.@sum.price > 0.3",
        "posts.@max.price > 1", "posts.@min.price < 1", "posts.@sum.price == %@",
      ] {
        let predicate = NSPredicate(format: format, decimal("0.3"))
        let request = NSFetchRequest<WorldAuthor>(entityName: "Author")
        request.predicate = predicate
        let found = try context.fetch(request)
        #expect(Set(found) == Set(authors.filter { predicate.evaluate(with: $0) }), "\(format)")
      }
      let exact = NSPredicate(format: "posts.@sum.price == %@", decimal("0.3"))
      #expect(authors.filter { exact.evaluate(with: $0) }.map(\.name) == ["author 0"])
    }
  }

  @Test("A double that no decimal represents is nil and causes no error")
  func beyondDecimals() throws {
    try with { context in
      let post = WorldPost(context: context)
      post.title = "huge"
      for value in [1e300, -1e300, 1e-300, .infinity, .nan] {
        post.setValue(NSNumber(value: value), forKey: "price")
      }
      post.setValue(NSNumber(value: Int64.max), forKey: "price")
      #expect(post.value(forKey: "price") as? NSDecimalNumber == decimal("9223372036854775807"))
      post.setValue(nil, forKey: "price")
      post.score = 1e300
      try context.save()
      let predicate = NSPredicate(format: "CAST(score, 'NSDecimalNumber') == nil")
      #expect(predicate.evaluate(with: post))
    }
  }

  @Test("A decimal of many digits is compared and sorted by its exact value")
  func manyDigits() throws {
    try with(["0.3333333333333333333333333", "2", "-5", "1.5"]) { context in
      let request = NSFetchRequest<WorldPost>(entityName: "Post")
      func expect(_ titles: [String]) throws {
        let found = try context.fetch(request).map(\.title)
        #expect(found == titles)
      }
      request.sortDescriptors = [NSSortDescriptor(key: "price", ascending: true)]
      try expect(["post 2", "post 0", "post 3", "post 1"])
      request.predicate = NSPredicate(format: "price > 1")
      try expect(["post 3", "post 1"])
      request.predicate = NSPredicate(format: "price < %@", decimal("0.4"))
      try expect(["post 2", "post 0"])
      request.predicate = NSPredicate(format: "price == %@", decimal("0.3333333333333333333333333"))
      try expect(["post 0"])
      request.predicate = NSPredicate(format: "price IN %@", [decimal("2"), decimal("1.5")])
      try expect(["post 3", "post 1"])
      request.predicate = NSPredicate(format: "price BETWEEN {0, 1}")
      try expect(["post 0"])
    }
  }

  @Test("A list of any length finds a decimal with more digits than a double has")
  func longList() throws {
    try with { context in
      for count in [3, 600] {
        let request = NSFetchRequest<WorldPost>(entityName: "Post")
        let list =
          (0..<count).map { decimal("\($0).5") }
          + [decimal("12345678901234567890.12"), decimal("0.2")]
        request.predicate = NSPredicate(format: "price IN %@", list)
        let found = try context.fetch(request).map(\.title)
        #expect(Set(found) == ["post 1", "post 2"])
      }
    }
  }
}
