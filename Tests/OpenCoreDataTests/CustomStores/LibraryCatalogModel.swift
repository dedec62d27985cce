import Foundation
import OpenCoreData

/// Authors and their works, for custom stores.
enum LibraryCatalogModel {
  static func make() -> NSManagedObjectModel {
    let author = NSEntityDescription()
    author.name = "Author"
    author.managedObjectClassName = "NSManagedObject"
    let work = NSEntityDescription()
    work.name = "Work"
    work.managedObjectClassName = "NSManagedObject"

    let name = NSAttributeDescription()
    name.name = "name"
    name.attributeType = .stringAttributeType
    let born = NSAttributeDescription()
    born.name = "born"
    born.attributeType = .integer32AttributeType
    born.isOptional = true
    let title = NSAttributeDescription()
    title.name = "title"
    title.attributeType = .stringAttributeType
    let pages = NSAttributeDescription()
    pages.name = "pages"
    pages.attributeType = .integer64AttributeType
    pages.isOptional = true
    let printed = NSAttributeDescription()
    printed.name = "printed"
    printed.attributeType = .dateAttributeType
    printed.isOptional = true

    let works = NSRelationshipDescription()
    works.name = "works"
    works.destinationEntity = work
    works.isOptional = true
    works.deleteRule = .cascadeDeleteRule
    works.maxCount = 0
    let writer = NSRelationshipDescription()
    writer.name = "writer"
    writer.destinationEntity = author
    writer.isOptional = true
    writer.deleteRule = .nullifyDeleteRule
    writer.maxCount = 1
    works.inverseRelationship = writer
    writer.inverseRelationship = works

    author.properties = [name, born, works]
    work.properties = [title, pages, printed, writer]
    let model = NSManagedObjectModel()
    model.entities = [author, work]
    return model
  }
}
