#if CloudKit
@_exported import CloudKitMirroring
#endif
@_exported import OpenCoreData

// Foundation on Linux has unavailable shells of these names; ours are meant.

/// An expression of a predicate.
public typealias NSExpression = OpenCoreData.NSExpression
/// A predicate that compares two expressions.
public typealias NSComparisonPredicate = OpenCoreData.NSComparisonPredicate
