// §18.3: what a server does not speak that the configuration file demands of it (`era`).

export const NOT_STATELESS =
  'it does not speak MCP 2026-07-28, which "era": "stateless" demands: remove "era" from its entry in the configuration file';

export const NO_SESSIONS =
  'it refuses to begin a session (initialize), which "era": "session" demands: remove "era" from its entry in the configuration file';
