/** RFC 6750 §2.1: the token of an Authorization header; undefined for any other header. */
export const readBearerToken = (authorization: string | undefined): string | undefined =>
  /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
