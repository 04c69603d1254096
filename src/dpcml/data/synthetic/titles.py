"""Category names and readable item titles of the planted world."""

from __future__ import annotations

from itertools import product

import numpy as np

from dpcml.utils.arrays import Array, IntArray

# Category: adjectives, nouns. No noun stands in two lists, so no title is made twice.
_WORDS = {
    "Drama": (
        "Quiet Broken Distant Fading Tender Restless Borrowed Hollow Bitter Patient Unspoken Second",
        "Promise Harvest Kitchen Letter Daughter Winter Inheritance Silence Homecoming Verdict Bridge",
    ),
    "Comedy": (
        "Clumsy Accidental Lucky Awkward Hopeless Cheerful Nosy Spare Reluctant Noisy Overdue Wobbly",
        "Waiter Cousin Wedding Parrot Landlord Holiday Trousers Neighbour Haircut Butler Picnic Audition",
    ),
    "Action": (
        "Explosive Final Rogue Relentless Burning Armoured Ruthless Rapid Steel Lethal Rising Double",
        "Pursuit Strike Countdown Vendetta Convoy Impact Fuse Escape Target Protocol Heist Ambush",
    ),
    "Science Fiction": (
        "Crimson Orbital Silent Quantum Frozen Stellar Forgotten Infinite Synthetic Last Deep Binary",
        "Orbit Signal Colony Nebula Android Horizon Engine Comet Galaxy Machine Starship Paradox",
    ),
    "Romance": (
        "Velvet Sudden Summer Endless Secret Golden Gentle Stolen Faithful Moonlit Blushing Sweet",
        "Kiss Serenade Heart Rose Embrace Waltz Valentine Whisper Bouquet Sweetheart Honeymoon Darling",
    ),
    "Thriller": (
        "Cold Fatal Hidden Watching Dead Vanishing Sleepless Wrong Third Guilty Locked Numb",
        "Witness Alibi Hostage Passenger Stranger Motive Conspiracy Ransom Informant Stairwell Suspect",
    ),
    "Fantasy": (
        "Enchanted Ancient Silver Cursed Wandering Emerald Sunken Mystic Elder Radiant Runed Feathered",
        "Dragon Sorcerer Kingdom Griffin Amulet Prophecy Oracle Unicorn Throne Grimoire Wyvern Citadel",
    ),
    "Horror": (
        "Bleeding Screaming Rotten Haunted Nameless Crawling Pale Starving Buried Howling Faceless Unholy",
        "Cellar Asylum Coffin Ghoul Mirror Scarecrow Crypt Nightmare Séance Doll Attic Exorcist",
    ),
    "Mystery": (
        "Missing Curious Veiled Crooked Unsolved Masked Scarlet Seventh Cryptic Puzzling Absent Smudged",
        "Lantern Inspector Cipher Manuscript Clue Riddle Footprint Portrait Librarian Pocketwatch Key",
    ),
    "Western": (
        "Dusty Lonesome Outlaw Wild Untamed Sunburnt Crossed Iron Galloping Weathered Desperate Rusty",
        "Saddle Canyon Marshal Frontier Saloon Stagecoach Mustang Prairie Holster Gunslinger Wagon Posse",
    ),
    "Animation": (
        "Bouncing Tiny Painted Giggling Magic Sleepy Brave Fluffy Paper Bubbly Curly Upside-Down",
        "Penguin Teapot Rainbow Squirrel Balloon Dinosaur Puppet Snowman Hedgehog Cupcake Crayon Turtle",
    ),
    "Documentary": (
        "Living Vital Hungry Changing Unseen Shrinking Measured Rare Migrating True Thirsty Open",
        "Glacier Rainforest Reef Pandemic Savanna Archive Harbour Volcano Railway River Factory Beehive",
    ),
    "War": (
        "Fallen Bloody Captured Marching Scorched Unknown Besieged Loyal Encircled Smoking Exhausted",
        "Regiment Trench Battalion Bunker Armistice Submarine Sergeant Bugle Minefield Fortress Siege",
    ),
    "Musical": (
        "Dazzling Swinging Humming Syncopated Tapping Glittering Jazzy Tuneless Dancing Chiming Rhyming",
        "Chorus Piano Ballad Cabaret Tambourine Overture Melody Violin Spotlight Encore Saxophone Rhapsody",
    ),
    "Noir": (
        "Smoky Rainy Doomed Neon Shadowed Hardboiled Bribed Midnight Hired Crumpled Double-Crossed Wet",
        "Alley Blonde Detective Revolver Cigarette Nightclub Gambler Boulevard Dame Blackmail Pawnshop",
    ),
    "Sport": (
        "Winning Undefeated Muddy Underdog Tired Champion Barefoot Bruised Unlikely Sprinting Retired",
        "Striker Marathon Goalkeeper Boxer Relay Racquet Playoff Cyclist Dugout Referee Scoreboard Hurdle",
    ),
}
_PLACES = (
    "Amber Bay", "Ashford", "Blackwater", "Briar Hill", "Cinder Street", "Dover Lane", "Eastmoor",
    "Fallow Creek", "Greyhaven", "Hazelwood", "Ivory Lane", "Juniper Falls", "Kestrel Point", "Lowgate",
    "Maple Ridge", "Northwick", "Orchid Square", "Pinehurst", "Quarry End", "Redstone", "Saltmarsh",
    "Thornfield", "Umber Valley", "Westbrook",
)  # fmt: skip
_SHORT = ("{a} {n}", "The {a} {n}", "{a} {n} II")
_LONG = ("The {n} of {p}", "The {a} {n} of {p}")


def category_names(count: int) -> tuple[str, ...]:
    """Return that many different category names.

    Examples
    --------
    >>> category_names(3)
    ('Drama', 'Comedy', 'Action')
    >>> category_names(18)[-2:]
    ('Drama 2', 'Comedy 2')
    """
    names = list(_WORDS)
    rounds = [divmod(number, len(names)) for number in range(count)]
    return tuple(names[place] if turn == 0 else f"{names[place]} {turn + 1}" for turn, place in rounds)


def titles(item_category: IntArray, rng: np.random.Generator) -> Array:
    """Return a title for each item, no two the same, from the words of its category.

    Parameters
    ----------
    item_category
        Category number of each item; shape (items,).
    rng
        Where the order of the titles comes from.

    Examples
    --------
    >>> [str(title) for title in titles(np.array([3, 3, 7]), np.random.default_rng(0))]
    ['Quantum Colony II', 'Forgotten Starship II', 'The Faceless Cellar']
    """
    names = np.empty(len(item_category), dtype=object)
    lists = item_category % len(_WORDS)  # "Drama 2" goes on where "Drama" ended
    for place, words in enumerate(_WORDS.values()):
        members = np.flatnonzero(lists == place)
        if len(members):
            pool = _pool(words, rng)
            parts = [divmod(number, len(pool)) for number in range(len(members))]
            names[members] = [pool[i] if part == 0 else f"{pool[i]}, Part {part + 1}" for part, i in parts]
    return names


def _pool(words: tuple[str, str], rng: np.random.Generator) -> list[str]:
    """Return all titles that a list of words allows in random order, short ones first."""
    adjectives, nouns = (half.split() for half in words)
    short = [form.format(a=a, n=n) for form, a, n in product(_SHORT, adjectives, nouns)]
    long = [f.format(a=a, n=n, p=p) for f, a, n, p in product(_LONG, adjectives, nouns, _PLACES)]
    long = list(dict.fromkeys(long))  # the form without an adjective comes once per adjective
    return [pool[i] for pool in (short, long) for i in rng.permutation(len(pool))]
