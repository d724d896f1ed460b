// How much a process remembers: the most entries of each kind that it holds at once, in one table, so that its memory can be added
// up. Beyond them the entry that was used longest ago goes, and is read, computed or asked for again.

export const CAPACITY = {
  /** Grants whose tokens came. Claims have 16 KiB at most, and most have one. */
  grants: 10_000,
  /** Grants that ended within the last minute: a stream may just be opening. */
  endedGrants: 10_000,
  /** Grants that were read or written lately: the same text need not be opened again. Claims have 16 KiB at most. */
  openedGrants: 1_000,
  /** Access tokens that were opened, by their text: to open one again costs more than the rest of the check. */
  openedTokens: 10_000,
  /** Refresh tokens that were opened, by their text: limits, login and answer each ask what a request brings. */
  openedRefreshTokens: 1_000,
  /** Refresh tokens in proxy mode, and the grant that each belongs to. */
  recentTokens: 10_000,
  /** Access tokens of the provider, of grants. */
  providerTokens: 10_000,
  /** Paths that tokens were shown at; anybody may have sent them: those of servers, and the gateway's own. */
  tokenPaths: 1_000,
  /** Tokens of operators that need not be looked up again, so that the page also works while the store does not answer. */
  operatorTokens: 1_000,
  /** Registered clients whose registration was renewed lately. */
  renewedClients: 10_000,
  /** Client ID metadata documents, those that could not be had, and their keys: each so many. */
  clientDocuments: 1_000,
  /** Callers that a limit refuses: a bound for what made-up addresses can take. */
  refusals: 10_000,
  /** Addresses that may look up something although a window is full: as `refusals`. */
  spareLookups: 10_000,
  /** Windows whose permits are leased: as `refusals`. */
  leasedWindows: 10_000,
  /** Users of whom it is written in the store that they called. */
  people: 10_000,
  /** Sessions, and grants, of `STORE_READS=tracked`, or whose limits are leased: some 10 MB. */
  trackedRecords: 10_000,
  /** Versions of values of the embedded store: a few megabytes. */
  storedVersions: 10_000,

  /** Users' connections, for all servers; tokens have 16 KiB at most, and 2 KiB mostly. */
  connections: 4_000,
  /** Where connections lie in the store: every call asks for it, and a hash takes longer than all the rest of it. */
  connectionPlaces: 4_000,
  connectionFailures: 2_000,
  /** Connections of which this process knows that the audit log has them. */
  auditedConnections: 10_000,
  /** Tokens of connections that could not be stored yet. */
  unsavedTokens: 1_000,
  /** Authorization servers of servers: those of a configuration file are few; each reload may bring others. */
  authorizationServers: 500,
  refusedRegistrations: 500,
  /** Exchanged tokens of one server; some 2 KB each. */
  exchangedTokens: 2_000,
  /** Kept apart from tokens: who is refused again and again pushes out nobody's. */
  exchangeFailures: 2_000,
  /** Signed identities of users, for one server. */
  identityTokens: 5_000,

  /** Sessions at one server. */
  serverSessions: 10_000,
  /** Users who log in at one server, and the connection of each. */
  connectedUsers: 10_000,
  /** Audiences that one server may tell something else; more than there are descriptions, as each is small. */
  audiences: 10_000,
  /** Descriptions of one server; as many as there are users whose lists are kept. */
  descriptions: 1_000,
  /** Bytes of them, as JSON text: instructions may be as long as an answer. */
  descriptionBytes: 16_777_216,
  /** Requests to a stdio server that ended here before they were answered; the answer may still come. */
  unansweredRequests: 1_000,

  /** Users whose lists of one server are kept. */
  userLists: 1_000,
  /** Bytes of the lists of all users of one server, as JSON text. */
  userListBytes: 67_108_864,
  /** Resources that went from one list: the last ones, as hashes. */
  formerResources: 1_000,
  /** Users with lists of their own whose joined list is kept. */
  joinedLists: 16,
  /** Sessions that are to be told of a change: their clients see what is new when they list again. */
  changedSessions: 1_000,
  /** Sessions whose linked resources are counted; beyond them the store forgets by itself. */
  linkOwners: 10_000,
  /** Bytes of pages of lists, as they are sent. */
  pageBytes: 33_554_432,
  /** Of these, pages that one user was the first to see: however many that are, those of others stay. */
  userPageBytes: 4_194_304,
  /** What rules decided, for all callers: some 15 MB. */
  decisions: 100_000,
  decidedCallers: 10_000,
  /** Texts of lists, and what the guards said of each. */
  guardedTexts: 20_000,
  /** Schemas of servers, and if each can be compiled. */
  schemas: 2_000,
  /** What clients declare, by its text: all clients of one program declare the same, and to read that for each call took up to 10 µs. */
  clientCapabilities: 100,
  /** URIs of resources, and if each can be read in one way only; some 100 bytes each. */
  resourceTexts: 10_000,
  /** Of `postern rules replay`: most calls are like one before. */
  replayedCalls: 100_000,
} satisfies Record<string, number>;
