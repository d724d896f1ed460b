// Cache sizes of a process: the maximum number of entries of each kind, in one table, so that its memory can be added up. A full
// cache evicts its least recently used entry, which is read, computed or requested again.

export const CAPACITY = {
  /** Grants whose tokens were presented. Their claims take at most 16 KiB, mostly 1 KiB. */
  grants: 10_000,
  /** Grants revoked within the last minute, kept because a stream may just be opening. */
  endedGrants: 10_000,
  /** Recently read or written grants, kept so that the same text is not decrypted again. Their claims take at most 16 KiB. */
  openedGrants: 1_000,
  /** Decrypted access tokens by text: decryption costs more than the rest of the check. */
  openedTokens: 10_000,
  /** Decrypted refresh tokens by text: limits, log and response each need the contents. */
  openedRefreshTokens: 1_000,
  /** Refresh tokens in proxy mode, with their grants. */
  recentTokens: 10_000,
  /** The provider's access tokens, by grant. */
  providerTokens: 10_000,
  /** Paths at which tokens were presented: of servers and of the gateway. Callers choose these paths. */
  tokenPaths: 1_000,
  /** Verified operator tokens, so that the page also works while the store is down. */
  operatorTokens: 1_000,
  /** Views of operators that are in the audit log, each for a minute. */
  adminViews: 1_000,
  /** Registered clients whose registration was renewed recently. */
  renewedClients: 10_000,
  /** Client ID metadata documents, failed fetches of such documents, and their keys: this many of each. */
  clientDocuments: 1_000,
  /** Rate-limited callers: bounds the memory that spoofed addresses can take. */
  refusals: 10_000,
  /** Addresses that are allowed a lookup although their window is full; bounded like `refusals`. */
  spareLookups: 10_000,
  /** Windows with leased permits; bounded like `refusals`. */
  leasedWindows: 10_000,
  /** Subjects that operators were notified of within the last minute or hour. */
  notifiedSubjects: 1_000,
  /** Users whose recent activity is recorded in the store. */
  people: 10_000,
  /** Sessions and grants that are cached with `STORE_READS=tracked` or leased limits: some 10 MB. */
  trackedRecords: 10_000,
  /** Versions of values in the embedded store: a few megabytes. */
  storedVersions: 10_000,

  /** Users' connections to all servers. Tokens take at most 16 KiB, mostly 2 KiB. */
  connections: 4_000,
  /** Store keys of connections: every call needs one, and hashing takes longer than the rest of the lookup. */
  connectionPlaces: 4_000,
  connectionFailures: 2_000,
  /** Connections that are known to be in the audit log. */
  auditedConnections: 10_000,
  /** Connection tokens that have not been stored yet. */
  unsavedTokens: 1_000,
  /** Authorization servers of upstream servers: few per configuration file, but each reload may add more. */
  authorizationServers: 500,
  refusedRegistrations: 500,
  /** Exchanged tokens for one server; some 2 KB each. */
  exchangedTokens: 2_000,
  /** Kept separately from tokens, so that repeated refusals evict no tokens. */
  exchangeFailures: 2_000,
  /** Signed user identities for one server. */
  identityTokens: 5_000,

  /** Sessions with one server. */
  serverSessions: 10_000,
  /** Users who are logged in to one server, with their connections. */
  connectedUsers: 10_000,
  /** Audiences of one server, whose answers may differ. There are more of these than of descriptions, since each is small. */
  audiences: 10_000,
  /** Descriptions of one server: as many as there are users with cached lists. */
  descriptions: 1_000,
  /** Total bytes of descriptions as JSON text, since instructions may be as long as a response. */
  descriptionBytes: 16_777_216,
  /** Cancelled requests to a stdio server whose responses may still arrive. */
  unansweredRequests: 1_000,

  /** Users whose lists from one server are cached. */
  userLists: 1_000,
  /** Total bytes of all users' lists from one server, as JSON text. */
  userListBytes: 67_108_864,
  /** Hashes of the resources most recently removed from one list. */
  formerResources: 1_000,
  /** Users with personal lists whose joined list is cached. */
  joinedLists: 16,
  /** Sessions with a pending change notification; clients without one see the change when they list again. */
  changedSessions: 1_000,
  /** Sessions whose linked resources are counted. For others, entries in the store expire. */
  linkOwners: 10_000,
  /** Bytes of serialized list pages. */
  pageBytes: 33_554_432,
  /** One user's share of `pageBytes`, by first request, so that no user can evict other users' pages. */
  userPageBytes: 4_194_304,
  /** Decisions of rules for all callers: some 15 MB. */
  decisions: 100_000,
  decidedCallers: 10_000,
  /** Text of list entries with the guards' verdicts. */
  guardedTexts: 20_000,
  /** Servers' schemas, and whether each compiles. */
  schemas: 2_000,
  /** Client capabilities by their text: all instances of a client declare the same ones, and parsing took up to 10 µs per call. */
  clientCapabilities: 100,
  /** Resource URIs, and whether each is unambiguous; some 100 bytes each. */
  resourceTexts: 10_000,
  /** Calls of `postern rules replay`, most of which repeat. */
  replayedCalls: 100_000,
} satisfies Record<string, number>;
