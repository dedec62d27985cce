#if CloudKit
@_exported import CloudKitMirroring
#endif
@_exported import OpenCoreData

// Foundation on Linux has unavailable types of these names; these aliases select ours.

/// An expression of a predicate.
public typealias NSExpression = OpenCoreData.NSExpression
/// A predicate that compares two expressions.
public typealias NSComparisonPredicate = OpenCoreData.NSComparisonPredicate
