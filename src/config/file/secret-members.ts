// §18.1: where secrets stand in a server's entry, also as other programs write one: beside `command` and `args`.

/** By names, each a secret as a whole where its name says so. */
export const RECORD_MEMBERS: readonly string[] = ['env', 'headers'];

export const ADDRESS_MEMBERS: readonly string[] = ['url', 'serverUrl', 'httpUrl'];
