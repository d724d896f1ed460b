/** What an app may do when its user says so. */
export interface AppQuestion {
  /** The end of a sentence that begins with the app. */
  readonly wish: string;
  readonly detail: string;
  readonly yes: string;
  readonly no: string;
}
